// The groups in which a rank takes part in an instruction.
#pragma once

#include <vector>

#include "plan/lower/ownership.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

// Segments on which the same ranks work together.
struct WorkGroup {
  std::vector<int> members;               // ranks by their coordinates within the range; the root first
  Segments segments;                      // ascending
  std::vector<Ownership::Shares> shares;  // whose segments these are
};

// Found from the rank's own coordinates: all members of a group find the same one, and a rank's groups in the same
// order as others that they have in common.
class RankGroups {
 public:
  // `state`: before the instruction.
  RankGroups(const Grid& grid, const Ownership& ownership, LevelState state, const Instruction& instruction)
      : grid_(grid), ownership_(ownership), state_(state), instruction_(instruction) {}

  // By their first segments; of one member only, too.
  std::vector<WorkGroup> of(int rank) const;

  // The segments of the group that are `member`'s own when the instruction's levels are scattered.
  Segments piece(const WorkGroup& group, int member) const;

  // One of so many even pieces. Each of the shares is cut by itself, so that a segment is in the same piece of all
  // groups that work on it: those that compute the same result have the same bits.
  Segments cut(const WorkGroup& group, int number, int pieces) const;

 private:
  using Coordinates = std::vector<int>;
  struct Search;
  bool covers(int level) const { return level >= instruction_.first && level <= instruction_.last; }
  void choose_digits(const Search& search, std::size_t open, Ownership::Shares shares,
                     std::vector<WorkGroup>& groups) const;
  void collect_members(const Search& search, const Ownership::Shares& shares, const Grid::Branch& branch, bool holds,
                       bool root, std::vector<int>& members) const;
  int counterpart(const Search& search, const Ownership::Shares& shares, Grid::Branch branch) const;

  const Grid& grid_;
  const Ownership& ownership_;
  LevelState state_;
  const Instruction& instruction_;
};

}  // namespace plait::plan
