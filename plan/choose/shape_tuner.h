// The best plans of one shape of communicator, for all collectives and sizes, by the cost model: what `plait tune`
// writes into a table.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/choose/table.h"

namespace plait::plan {

// A range is within this share of the best plan at each of its sizes on the grid.
inline constexpr double range_tolerance = 0.02;
inline constexpr std::size_t largest_tuned_bytes = std::size_t{1} << 30;

// The sizes that are looked at: 1 B to 1 GiB, eight an octave (8, 9 .. 15 times a power of two) where there are so
// many.
std::vector<std::size_t> tuned_sizes();

// A plan and what it takes at the sizes of a grid.
struct PlanCurve {
  std::string plan;             // as named_candidate() takes it
  std::vector<double> seconds;  // by size; infinite where the plan is not for it
};

// `sizes`: of tuned_sizes(), ascending, or 0 alone. Every plan that the model finds to be the best for some size and
// some number of chunks: all programs, with all algorithms, numbers of chunks and rails, of which candidates() takes
// the cheapest few. With `flat` those without a hierarchy alone.
std::vector<PlanCurve> plan_curves(Collective collective, const CandidateContext& context,
                                   const std::vector<std::size_t>& sizes, bool flat);

// The ranges of a collective, and beside each what the best plan without a hierarchy takes at its ends.
struct TunedRanges {
  std::vector<TunedRange> ranges;
  std::vector<TunedRange> flat;  // of the same ends; `plan`: the best one at `from`
};
// Fails (invalid) where the machine's figures are so large that no plan has a time.
Result<TunedRanges> tune_collective(Collective collective, const CandidateContext& context);

// Whether a table has it: those with lengths by rank are found as those of equal segments.
bool is_tuned(Collective collective);

}  // namespace plait::plan
