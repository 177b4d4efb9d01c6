// Start-up and moved bytes of the reductions that run on a communicator: those of its plans, by the cost model.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/overlap/contention.h"

namespace plait::plan {

// Sizes for which plans are looked at: powers of two from 1 KiB on, up to the first of `most` bytes or more.
std::vector<std::size_t> reduction_sizes(std::size_t most);

// What an allreduce of so many bytes takes by a plan as named_candidate() takes it: `startup` is its predicted time
// with bytes that cost nothing, `moved` counts the bytes of its busiest network port, in one direction, and on one node
// those of its busiest processor. Precondition: two ranks or more. Fails (invalid) where the plan is none for such a
// call, or the machine's figures give no time.
Result<ReductionCost> plan_reduction(std::size_t bytes, const std::string& plan, const CandidateContext& context);

// The same for the planner's first candidate for each size.
Result<std::vector<ReductionCost>> plan_reductions(const std::vector<std::size_t>& sizes,
                                                   const CandidateContext& context);

}  // namespace plait::plan
