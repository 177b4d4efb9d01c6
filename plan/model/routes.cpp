#include "plan/model/routes.h"

#include <algorithm>

#include "core/keyed_hash.h"
#include "topo/hierarchy_print.h"

namespace plait::plan {
namespace {

KeyedHash hash_of(std::span<const int> print) {
  KeyedHash hash{};
  std::ranges::copy(std::as_bytes(print), hash.begin());
  return hash;
}

}  // namespace

Routes::Routes(ChannelKind beyond) : beyond_(beyond) { take(beyond); }

void Routes::take(ChannelKind kind) {
  kinds_.add(kind);
  if (!shared_memory_ && traits(kind).shared_memory_collectives) shared_memory_ = kind;
}

void Routes::connect(std::span<const int> group_of, ChannelKind kind) {
  const auto kept = std::make_shared<const std::vector<int>>(group_of.begin(), group_of.end());
  near_.push_back({kept, *kept, kind, {}});
  take(kind);
}

void Routes::connect_nodes(const Hierarchy& hierarchy, ChannelKind kind) {
  near_.push_back({hierarchy.memory(), hierarchy.nodes_by_rank(), kind, topo::print_of(hierarchy)});
  take(kind);
}

void Routes::append_key(std::string& key) const {
  const auto append = [&key](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(beyond_);
  append(near_.size());
  for (const Near& near : near_) {
    append(near.kind);
    append(near.print.empty() ? keyed_hash({}, std::as_bytes(near.group_of)) : hash_of(near.print));
  }
}

Routes routes_by_node(std::span<const int> node_of, ChannelKind near, ChannelKind beyond) {
  Routes routes(beyond);
  routes.connect(node_of, near);
  return routes;
}

Routes routes_by_node(const Hierarchy& hierarchy, ChannelKind near, ChannelKind beyond) {
  Routes routes(beyond);
  routes.connect_nodes(hierarchy, near);
  return routes;
}

}  // namespace plait::plan
