#include "plan/model/routes.h"

namespace plait::plan {

Routes::Routes(ChannelKind beyond) : beyond_(beyond) { take(beyond); }

void Routes::take(ChannelKind kind) {
  kinds_.add(kind);
  if (!shared_memory_ && traits(kind).shared_memory_collectives) shared_memory_ = kind;
}

void Routes::connect(std::span<const int> group_of, ChannelKind kind) {
  near_.push_back({std::make_shared<const std::vector<int>>(group_of.begin(), group_of.end()), kind});
  take(kind);
}

void Routes::append_key(std::string& key) const {
  const auto append = [&key](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(beyond_);
  append(near_.size());
  for (const Near& near : near_) {
    append(near.kind);
    for (const int group : *near.group_of) append(group);
  }
}

Routes routes_by_node(std::span<const int> node_of, ChannelKind near, ChannelKind beyond) {
  Routes routes(beyond);
  routes.connect(node_of, near);
  return routes;
}

Routes routes_by_node(const Hierarchy& hierarchy, ChannelKind near, ChannelKind beyond) {
  std::vector<int> node_of;
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) node_of.push_back(hierarchy.node_of(rank));
  return routes_by_node(node_of, near, beyond);
}

}  // namespace plait::plan
