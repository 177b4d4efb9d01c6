#include "plan/lower/ownership.h"

#include <algorithm>
#include <numeric>

namespace plait::plan {

namespace {

constexpr int most_pieces_a_child = 4;

}  // namespace

int even_pieces(const Grid& grid, int level) {
  const int most = most_pieces_a_child * grid.cardinality(level);
  int pieces = 1;
  for (const int size : grid.sizes(level)) {
    pieces = std::lcm(pieces, size);
    if (pieces > most) return 0;
  }
  return pieces;
}

bool scatters_levels(const Instruction& instruction) {
  return instruction.what == Instruct::reduce_scatter || instruction.what == Instruct::scatter;
}

Ownership::Ownership(const Program& program, const Grid& grid, int segments, bool by_rank)
    : grid_(grid), by_rank_(by_rank), segments_(segments), radix_(static_cast<std::size_t>(grid.levels()), 1) {
  if (by_rank_) {
    for (int vrank = 0; vrank < grid.ranks() && ranks_in_order_; ++vrank)
      ranks_in_order_ = grid.rank_at(vrank) == vrank;
    return;
  }
  for (const Instruction& instruction : program.instructions)
    for (int level = instruction.first; scatters_levels(instruction) && level <= instruction.last; ++level)
      if (std::ranges::find(order_, level) == order_.end()) order_.push_back(level);
  for (const int level : order_) radix_[static_cast<std::size_t>(level)] = even_pieces(grid, level);
}

int Ownership::digits(int level) const {
  return by_rank_ ? grid_.cardinality(level) : radix_[static_cast<std::size_t>(level)];
}

// In a group that a segment's owner is not in, any child will do.
int Ownership::child(int level, int digit, int children) const {
  return by_rank_ ? digit % children : digit * children / digits(level);
}

Segments Ownership::segments(const Shares& shares) const {
  Segments found;
  if (!by_rank_) {
    collect_digits(shares, 0, {0, segments_}, found);
    return found;
  }
  collect_owners(shares, grid_.root(), found);
  return owned_by(found);
}

bool Ownership::divides_from(const Shares& shares, int level) const {
  for (; level < grid_.levels(); ++level)
    if (shares[static_cast<std::size_t>(level)].children > 1) return true;
  return false;
}

void Ownership::collect_owners(const Shares& shares, const Grid::Branch& branch, Segments& vranks) const {
  if (!divides_from(shares, branch.level)) return append(vranks, {branch.first, branch.end - branch.first});
  const Share& share = shares[static_cast<std::size_t>(branch.level)];
  const int children = grid_.children(branch);
  if (grid_.is_regular(branch) && !divides_from(shares, branch.level + 1)) {
    const int size = (branch.end - branch.first) / children;
    for (int child = share.child; child < children; child += share.children)
      append(vranks, {branch.first + child * size, size});
    return;
  }
  for (int child = share.child; child < children; child += share.children)
    collect_owners(shares, grid_.child(branch, child), vranks);
}

Segments Ownership::owned_by(const Segments& vranks) const {
  if (ranks_in_order_ && std::ranges::is_sorted(vranks, {}, &SegmentRun::first)) return vranks;
  std::vector<SegmentRun> runs;
  for (const SegmentRun& run : vranks)
    if (ranks_in_order_)
      runs.push_back(run);
    else
      for (int vrank = run.first; vrank < run.end(); ++vrank) runs.push_back({grid_.rank_at(vrank), 1});
  std::ranges::sort(runs, {}, &SegmentRun::first);
  Segments segments;
  for (const SegmentRun& run : runs) append(segments, run);
  return segments;
}

void Ownership::collect_digits(const Shares& shares, std::size_t position, SegmentRun within,
                               Segments& segments) const {
  const bool divided = std::any_of(order_.begin() + static_cast<std::ptrdiff_t>(position), order_.end(),
                                   [&](int level) { return shares[static_cast<std::size_t>(level)].children > 1; });
  if (!divided) return append(segments, within);
  const int level = order_[position], radix = digits(level), stride = within.count / radix;
  const Share& share = shares[static_cast<std::size_t>(level)];
  const auto first_of = [&](int child) { return (child * radix + share.children - 1) / share.children; };
  for (int digit = first_of(share.child); digit < first_of(share.child + 1); ++digit)
    collect_digits(shares, position + 1, {within.first + digit * stride, stride}, segments);
}

}  // namespace plait::plan
