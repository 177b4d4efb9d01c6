#include "runtime/team/channel_groups.h"

#include <algorithm>
#include <map>

namespace plait::runtime {
namespace {

// Whether `other` joins all ranks that `groups` joins.
bool joined_by(const std::vector<int>& groups, const std::vector<int>& other) {
  std::map<int, std::size_t> first;  // member of each group
  for (std::size_t rank = 0; rank < groups.size(); ++rank) {
    if (groups[rank] < 0) continue;
    const auto [member, alone] = first.try_emplace(groups[rank], rank);
    if (alone) continue;
    if (other.empty() || other[rank] < 0 || other[rank] != other[member->second]) return false;
  }
  return true;
}

bool joins_all(const std::vector<int>& groups) {
  return !groups.empty() && groups.front() >= 0 &&
         std::ranges::all_of(groups, [&](int group) { return group == groups.front(); });
}

}  // namespace

bool ChannelGroups::adds(ChannelKind kind, ChannelSet nearer) const {
  const std::vector<int>& groups = groups_[index_of(kind)];
  if (joined_by(groups, {}) && !(groups.size() == 1 && nearer.empty())) return false;
  return std::ranges::none_of(
      all_channel_kinds, [&](ChannelKind one) { return nearer.has(one) && joined_by(groups, groups_[index_of(one)]); });
}

std::optional<ChannelKind> ChannelGroups::connecting_all(ChannelSet kinds) const {
  for (const ChannelKind kind : all_channel_kinds)
    if (kinds.has(kind) && joins_all(groups_[index_of(kind)])) return kind;
  return {};
}

Routes ChannelGroups::routes(ChannelSet used) const {
  const ChannelKind beyond = *connecting_all(used);
  Routes routes(beyond);
  for (const ChannelKind kind : all_channel_kinds) {
    if (kind == beyond) break;
    if (used.has(kind)) routes.connect(groups_[index_of(kind)], kind);
  }
  return routes;
}

}  // namespace plait::runtime
