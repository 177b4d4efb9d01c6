#include "runtime/team/channel_groups.h"

#include <algorithm>
#include <map>
#include <set>

namespace plait::runtime {

bool ChannelGroups::Groups::joined_by(const Groups& other) const {
  std::map<int, std::size_t> first;  // member of each group
  if (join_nothing() || other.join_all()) return true;
  if (usual() && other.usual() && one_ == other.one_) return true;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (of(rank) < 0) continue;
    const auto [member, alone] = first.try_emplace(of(rank), rank);
    if (alone) continue;
    if (other.ranks() == 0 || other.of(rank) < 0 || other.of(rank) != other.of(member->second)) return false;
  }
  return true;
}

bool ChannelGroups::Groups::join_nothing() const {
  if (usual()) return one_ ? ranks() < 2 : hierarchy_.nodes() == hierarchy_.ranks();
  std::set<int> seen;
  return std::ranges::none_of(list_, [&](int group) { return group >= 0 && !seen.insert(group).second; });
}

bool ChannelGroups::Groups::join_all() const {
  if (usual()) return one_ || hierarchy_.nodes() == 1;
  return !list_.empty() && list_.front() >= 0 &&
         std::ranges::all_of(list_, [&](int group) { return group == list_.front(); });
}

void ChannelGroups::Groups::add_to(Routes& routes, ChannelKind kind) const {
  if (!usual()) return routes.connect(list_, kind);
  if (!one_) return routes.connect_nodes(hierarchy_, kind);
  routes.connect(std::vector<int>(ranks(), 0), kind);
}

bool ChannelGroups::adds(ChannelKind kind, ChannelSet nearer) const {
  const Groups& groups = groups_[index_of(kind)];
  if (groups.join_nothing() && !(groups.ranks() == 1 && nearer.empty())) return false;
  return std::ranges::none_of(
      all_channel_kinds, [&](ChannelKind one) { return nearer.has(one) && groups.joined_by(groups_[index_of(one)]); });
}

std::optional<ChannelKind> ChannelGroups::connecting_all(ChannelSet kinds) const {
  for (const ChannelKind kind : all_channel_kinds)
    if (kinds.has(kind) && groups_[index_of(kind)].join_all()) return kind;
  return {};
}

Routes ChannelGroups::routes(ChannelSet used) const {
  const ChannelKind beyond = *connecting_all(used);
  Routes routes(beyond);
  for (const ChannelKind kind : all_channel_kinds) {
    if (kind == beyond) break;
    if (used.has(kind)) groups_[index_of(kind)].add_to(routes, kind);
  }
  return routes;
}

}  // namespace plait::runtime
