// The dynamic programme over the sizes: as few ranges as possible, each with one plan that is near the best at every
// size of it.
#pragma once

#include <cstddef>
#include <vector>

namespace plait::plan {

// Points first <= i < end, all by one plan.
struct CoveredRange {
  std::size_t first = 0, end = 0;
  std::size_t plan = 0;
};

// `times[plan][point]`: seconds; infinite where the plan is not for that size. The fewest ranges such that each range's
// plan takes at most 1 + `tolerance` times the least of its point everywhere; of those with as few ranges the one with
// the least sum over the points of time / least time. All plans have the same number of points, and each point has some
// plan with a finite time. Linear in the number of times.
std::vector<CoveredRange> cover_sizes(const std::vector<std::vector<double>>& times, double tolerance);

}  // namespace plait::plan
