// How segments are dealt out along the levels.
#pragma once

#include <array>
#include <vector>

#include "plan/algorithm/program.h"
#include "plan/model/block_runs.h"
#include "plan/model/grid.h"

namespace plait::plan {

// The least common multiple of a level's group sizes: into so many pieces its data can be cut evenly for each group. 0
// when that takes more than a few pieces a child.
int even_pieces(const Grid& grid, int level);

// Whether the instruction scatters its levels.
bool scatters_levels(const Instruction& instruction);

// A segment has a digit at every level that the program scatters; the digit says which child of each group at that
// level keeps the segment when the level is scattered, always the same one. Where each rank has a segment of its own
// (`by_rank`) the digits are its coordinates. Keeps a reference to the grid.
class Ownership {
 public:
  Ownership(const Program& program, const Grid& grid, int segments, bool by_rank);

  // What one of so many children of a group keeps; of one child: everything.
  struct Share {
    int child = 0, children = 1;
    bool operator==(const Share&) const = default;
  };
  using Shares = std::array<Share, most_levels>;  // by level

  // The segments that are in all of the shares, ascending.
  Segments segments(const Shares& shares) const;

  // Digits at a level, which child of a group of so many keeps those segments, and the share of the digit's alone.
  int digits(int level) const;
  int child(int level, int digit, int children) const;
  Share exactly(int level, int digit) const { return {digit, digits(level)}; }

 private:
  bool divides_from(const Shares& shares, int level) const;
  void collect_owners(const Shares& shares, const Grid::Branch& branch, Segments& vranks) const;
  Segments owned_by(const Segments& vranks) const;
  void collect_digits(const Shares& shares, std::size_t position, SegmentRun within, Segments& segments) const;

  const Grid& grid_;
  bool by_rank_;
  bool ranks_in_order_ = true;  // vranks are ranks
  int segments_;
  std::vector<int> order_;  // levels as they are scattered: the first cut is into contiguous parts
  std::vector<int> radix_;  // by level
};

}  // namespace plait::plan
