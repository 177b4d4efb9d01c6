#include "plan/model/machine_levels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plait::plan {
namespace {

using Member = std::int32_t Location::*;

bool is_outside(LevelKind kind) { return kind == LevelKind::leaf_switch || kind == LevelKind::node; }

// Of the levels within a node; none where one of them is of no known kind, or none is one of GPUs.
std::vector<Member> members_of(const Machine& machine) {
  std::vector<Member> members;
  bool has_gpus = false;
  std::size_t next = 0;
  for (const LinkLevel& level : machine.levels) {
    if (level.network || level.name == name(LevelKind::node)) continue;
    while (next < levels_within_node.size() && name(levels_within_node[next].kind) != level.name) ++next;
    if (next == levels_within_node.size()) return {};
    const LevelKind kind = levels_within_node[next].kind;
    has_gpus = has_gpus || kind == LevelKind::island || kind == LevelKind::gpu;
    members.push_back(levels_within_node[next].place);
    ++next;
  }
  return has_gpus ? members : std::vector<Member>();
}

// In which of a level's groups a vrank is.
std::int32_t group_of(const Level& level, int vrank) {
  return static_cast<std::int32_t>(std::ranges::upper_bound(level.group_first, vrank) - level.group_first.begin()) - 1;
}

}  // namespace

Hierarchy hierarchy_on(const Machine& machine, const Hierarchy& shape) {
  const std::span<const Level> levels = shape.levels();
  const auto inner = std::ranges::find_if(levels, [](const Level& level) { return !is_outside(level.kind); });
  const std::span<const Level> within(inner, levels.end());
  const std::vector<Member> members = members_of(machine);
  if (members.empty() || members.size() != within.size()) return shape;
  std::vector<Location> locations(static_cast<std::size_t>(shape.ranks()));
  for (int vrank = 0; vrank < shape.ranks(); ++vrank) {
    const int rank = shape.rank_at(vrank);
    Location& location = locations[static_cast<std::size_t>(rank)];
    location.host.low = static_cast<std::uint64_t>(shape.node_of(rank));
    if (levels.front().kind == LevelKind::leaf_switch)
      location.leaf_switch = static_cast<std::uint64_t>(group_of(levels.front(), vrank)) + 1;
    for (std::size_t level = 0; level < within.size(); ++level)
      location.*members[level] = group_of(within[level], vrank);
  }
  return Hierarchy::from_locations(locations);
}

}  // namespace plait::plan
