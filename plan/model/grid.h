// The coordinates of the ranks along the levels that a plan works on.
#pragma once

#include <vector>

#include "plan/model/layer.h"
#include "topo/hierarchy.h"

namespace plait::plan {

enum class GridKind {
  flat,        // one level: all ranks, in vrank order
  rank_order,  // one level: all ranks, in rank order (for operators that do not commute)
  full,        // every level of the hierarchy
};

struct Grid {
  int levels = 0;
  std::vector<int> cardinality;              // by level: the largest number of children of a group
  std::vector<std::vector<int>> coordinate;  // [rank][level], outermost level first
  std::vector<std::vector<int>> children;    // [rank][level]: size of the rank's group at that level
  std::vector<int> order;                    // all ranks by ascending coordinates
  int first_in_node = 0;  // levels from here on split a node, and only they do; `levels` where none does

  int ranks() const { return static_cast<int>(order.size()); }
};

// `leader` gets coordinate 0 at every level, by changing places with the child that had it; -1: nobody is moved.
// rank_order ignores `leader`.
Grid make_grid(const Hierarchy& hierarchy, GridKind kind, int leader);

}  // namespace plait::plan
