#include "plan/model/grid.h"

#include <algorithm>
#include <cassert>

namespace plait::plan {

namespace {

// How many of the level's groups each group of the level above has: the different numbers, ascending.
std::vector<int> different_sizes(const Level& level, std::span<const int> parents) {
  if (level.cardinality > 0) return {level.cardinality};
  std::vector<int> sizes;
  std::size_t child = 0;
  for (std::size_t parent = 0; parent < parents.size(); ++parent) {
    const std::size_t first = child;
    while (child < level.group_first.size() &&
           (parent + 1 == parents.size() || level.group_first[child] < parents[parent + 1]))
      ++child;
    const int size = static_cast<int>(child - first);
    if (const auto at = std::ranges::lower_bound(sizes, size); at == sizes.end() || *at != size) sizes.insert(at, size);
  }
  return sizes;
}

}  // namespace

Grid::Grid(const Hierarchy& hierarchy, GridKind kind, int leader)
    : hierarchy_(&hierarchy),
      kind_(kind),
      leader_(leader < 0 || kind == GridKind::rank_order ? -1 : hierarchy.vrank_of(leader)) {
  find_levels();
}

// Those that split a node begin where the groups above are the nodes.
void Grid::find_levels() {
  static constexpr int whole = 0;
  std::span<const int> parents(&whole, 1);
  const std::span<const int> nodes = hierarchy_->node_first();
  if (kind_ != GridKind::full) {
    levels_.push_back({nullptr, {ranks()}, true});
    first_in_node_ = nodes.size() == 1 ? 0 : 1;
    return;
  }
  first_in_node_ = -1;
  for (const Level& level : hierarchy_->levels()) {
    if (first_in_node_ < 0 && std::ranges::equal(parents, nodes)) first_in_node_ = levels();
    levels_.push_back({&level.group_first, different_sizes(level, parents), false});
    parents = level.group_first;
  }
  if (first_in_node_ < 0) first_in_node_ = levels();
  assert(!levels_.empty());
  for (std::size_t level = levels_.size(); level-- > 0;)
    levels_[level].regular =
        levels_[level].sizes.size() == 1 && (level + 1 == levels_.size() || levels_[level + 1].regular);
}

// Number of the level's group that the vrank is in, or that begins there.
int Grid::group_at(const GridLevel& level, int vrank) const {
  const auto& first = *level.group_first;
  return static_cast<int>(std::upper_bound(first.begin(), first.end(), vrank) - first.begin()) - 1;
}

int Grid::children(const Branch& branch) const {
  const GridLevel& level = levels_[static_cast<std::size_t>(branch.level)];
  if (level.sizes.size() == 1) return level.sizes.front();
  return group_at(level, branch.end - 1) - group_at(level, branch.first) + 1;
}

int Grid::raw_child_with(const Branch& branch, int vrank) const {
  const GridLevel& level = levels_[static_cast<std::size_t>(branch.level)];
  if (level.regular) return (vrank - branch.first) / ((branch.end - branch.first) / level.sizes.front());
  return group_at(level, vrank) - group_at(level, branch.first);
}

int Grid::child_with(const Branch& branch, int vrank) const {
  const int child = raw_child_with(branch, vrank);
  if (!branch.led) return child;
  const int leaders = raw_child_with(branch, leader_);
  return child == leaders ? 0 : child == 0 ? leaders : child;
}

Grid::Branch Grid::child(const Branch& branch, int coordinate) const {
  const GridLevel& level = levels_[static_cast<std::size_t>(branch.level)];
  int number = coordinate;
  if (branch.led) {
    const int leaders = raw_child_with(branch, leader_);
    number = coordinate == 0 ? leaders : coordinate == leaders ? 0 : coordinate;
  }
  Branch child{branch.level + 1, 0, 0, branch.led && coordinate == 0};
  if (level.regular) {
    const int size = (branch.end - branch.first) / level.sizes.front();
    child.first = branch.first + number * size;
    child.end = child.first + size;
    return child;
  }
  const auto group = static_cast<std::size_t>(group_at(level, branch.first) + number);
  child.first = (*level.group_first)[group];
  child.end =
      group + 1 < level.group_first->size() ? std::min((*level.group_first)[group + 1], branch.end) : branch.end;
  return child;
}

Grid::Branch Grid::branch_of(int rank, int level) const {
  const int vrank = vrank_of(rank);
  Branch branch = root();
  while (branch.level < level) branch = child(branch, child_with(branch, vrank));
  return branch;
}

int Grid::coordinate(int rank, int level) const { return child_with(branch_of(rank, level), vrank_of(rank)); }

int Grid::children(int rank, int level) const { return children(branch_of(rank, level)); }

}  // namespace plait::plan
