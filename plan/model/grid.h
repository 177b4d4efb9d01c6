// The coordinates of the ranks along the levels that a plan works on.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/model/layer.h"
#include "topo/hierarchy.h"

namespace plait::plan {

enum class GridKind {
  flat,        // one level: all ranks, in vrank order
  rank_order,  // one level: all ranks, in rank order (for operators that do not commute)
  full,        // every level of the hierarchy
};

// A tree: each level splits the groups of the one above. Found from the hierarchy as they are asked for, so that a grid
// takes no memory a rank, and one with another leader costs nothing. Keeps a reference to the hierarchy.
class Grid {
 public:
  // `leader` gets coordinate 0 at every level, by changing places with the child that had it; -1: nobody is moved.
  // rank_order ignores `leader`.
  Grid(const Hierarchy& hierarchy, GridKind kind, int leader);
  Grid() = default;  // of no ranks

  int levels() const { return static_cast<int>(levels_.size()); }
  int ranks() const { return hierarchy_->ranks(); }
  // The largest number of children of a group.
  int cardinality(int level) const { return sizes(level).back(); }
  // The different numbers of children that groups have, ascending.
  const std::vector<int>& sizes(int level) const { return levels_[static_cast<std::size_t>(level)].sizes; }
  bool uneven(int level) const { return sizes(level).size() > 1; }

  // Levels from here on split a node, and only they do; levels() where none does.
  int first_in_node() const { return first_in_node_; }
  void forget_nodes() { first_in_node_ = levels(); }

  int coordinate(int rank, int level) const;
  int children(int rank, int level) const;  // of the rank's group at that level

  // The ranks that agree on the coordinates of all levels before `level`: vranks [first, end).
  struct Branch {
    int level = 0;
    int first = 0, end = 0;
    bool led = false;  // the leader is among them
  };
  Branch root() const { return {0, 0, ranks(), leader_ >= 0}; }
  int children(const Branch& branch) const;
  // Whether all its children are alike, and child c begins c times their size behind it.
  bool is_regular(const Branch& branch) const {
    return !branch.led && levels_[static_cast<std::size_t>(branch.level)].regular;
  }
  Branch child(const Branch& branch, int coordinate) const;
  // Which child of the branch has the vrank.
  int child_with(const Branch& branch, int vrank) const;
  Branch branch_of(int rank, int level) const;

  int rank_at(int vrank) const { return kind_ == GridKind::rank_order ? vrank : hierarchy_->rank_at(vrank); }
  int vrank_of(int rank) const { return kind_ == GridKind::rank_order ? rank : hierarchy_->vrank_of(rank); }

 private:
  struct GridLevel {
    const Numbering* group_first = nullptr;  // first vranks of the groups; none: each vrank is one
    std::vector<int> sizes;
    bool regular = false;  // all groups are alike, down to the single ranks
  };
  void find_levels();
  int raw_child_with(const Branch& branch, int vrank) const;
  int group_at(const GridLevel& level, int vrank) const;

  const Hierarchy* hierarchy_ = nullptr;
  GridKind kind_ = GridKind::flat;
  int leader_ = -1;  // a vrank
  std::vector<GridLevel> levels_;
  int first_in_node_ = 0;
};

}  // namespace plait::plan
