#include "plan/model/grid.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace plait::plan {

namespace {

// First vranks of the groups at each level of the grid, outermost first; the last level splits into single vranks.
std::vector<std::vector<int>> boundaries(const Hierarchy& hierarchy, GridKind kind) {
  std::vector<int> singles(static_cast<std::size_t>(hierarchy.ranks()));
  std::iota(singles.begin(), singles.end(), 0);
  if (kind == GridKind::flat || kind == GridKind::rank_order) return {singles};
  std::vector<std::vector<int>> result;
  for (const Level& level : hierarchy.levels()) result.push_back(level.group_first);
  return result;
}

// Coordinate of each vrank at one level: its group's index within the parent's group.
void number_children(const std::vector<int>& parents, const std::vector<int>& children,
                     std::vector<std::vector<int>>& coordinate_of_vrank,
                     std::vector<std::vector<int>>& children_of_vrank, std::vector<int>& counts) {
  std::size_t parent = 0, child = 0;
  int index = 0;
  for (int vrank = 0; vrank < static_cast<int>(coordinate_of_vrank.size()); ++vrank) {
    if (child + 1 < children.size() && children[child + 1] == vrank) {
      ++child;
      ++index;
    }
    if (parent + 1 < parents.size() && parents[parent + 1] == vrank) {
      ++parent;
      index = 0;
    }
    coordinate_of_vrank[static_cast<std::size_t>(vrank)].push_back(index);
    if (counts.size() <= parent) counts.push_back(0);
    counts[parent] = index + 1;
  }
  parent = 0;
  for (int vrank = 0; vrank < static_cast<int>(coordinate_of_vrank.size()); ++vrank) {
    if (parent + 1 < parents.size() && parents[parent + 1] == vrank) ++parent;
    children_of_vrank[static_cast<std::size_t>(vrank)].push_back(counts[parent]);
  }
}

// The level whose parents' groups are the nodes.
int first_level_in_node(const Hierarchy& hierarchy, const std::vector<std::vector<int>>& levels) {
  std::vector<int> parents = {0};
  for (std::size_t level = 0; level < levels.size(); ++level) {
    if (std::ranges::equal(parents, hierarchy.node_first())) return static_cast<int>(level);
    parents = levels[level];
  }
  return static_cast<int>(levels.size());
}

// Moves `leader` to coordinate 0 at each level, within the groups that contain it.
void lead(Grid& grid, int leader) {
  const std::vector<int> path = grid.coordinate[static_cast<std::size_t>(leader)];
  for (auto& coordinate : grid.coordinate) {
    for (int level = 0; level < grid.levels; ++level) {
      int& mine = coordinate[static_cast<std::size_t>(level)];
      const int leaders = path[static_cast<std::size_t>(level)];
      const bool on_path = mine == leaders;
      if (on_path)
        mine = 0;
      else if (mine == 0)
        mine = leaders;
      if (!on_path) break;  // deeper levels belong to another group
    }
  }
}

}  // namespace

Grid make_grid(const Hierarchy& hierarchy, GridKind kind, int leader) {
  const std::vector<std::vector<int>> levels = boundaries(hierarchy, kind);
  assert(!levels.empty());
  std::vector<std::vector<int>> coordinate_of_vrank(static_cast<std::size_t>(hierarchy.ranks()));
  std::vector<std::vector<int>> children_of_vrank(coordinate_of_vrank.size());
  Grid grid;
  grid.levels = static_cast<int>(levels.size());
  std::vector<int> parents = {0};
  for (const std::vector<int>& children : levels) {
    std::vector<int> counts;
    number_children(parents, children, coordinate_of_vrank, children_of_vrank, counts);
    grid.cardinality.push_back(*std::max_element(counts.begin(), counts.end()));
    parents = children;
  }
  grid.coordinate.resize(coordinate_of_vrank.size());
  grid.children.resize(coordinate_of_vrank.size());
  grid.order.resize(coordinate_of_vrank.size());
  for (int vrank = 0; vrank < hierarchy.ranks(); ++vrank) {
    const int rank = kind == GridKind::rank_order ? vrank : hierarchy.rank_at(vrank);
    grid.coordinate[static_cast<std::size_t>(rank)] = coordinate_of_vrank[static_cast<std::size_t>(vrank)];
    grid.children[static_cast<std::size_t>(rank)] = children_of_vrank[static_cast<std::size_t>(vrank)];
  }
  grid.first_in_node = first_level_in_node(hierarchy, levels);
  if (leader >= 0 && kind != GridKind::rank_order) lead(grid, leader);
  std::iota(grid.order.begin(), grid.order.end(), 0);
  std::sort(grid.order.begin(), grid.order.end(), [&](int a, int b) {
    return grid.coordinate[static_cast<std::size_t>(a)] < grid.coordinate[static_cast<std::size_t>(b)];
  });
  return grid;
}

}  // namespace plait::plan
