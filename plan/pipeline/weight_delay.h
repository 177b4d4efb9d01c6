// Which gradients of weights to put off, so that a stage has work while its transfers are under way. Pure.
//
// Source: "On Optimizing the Communication of Model Parallelism", section 4, backward-weight delaying: a simple model
// of computing and transferring says how little delay covers all transfers.
#pragma once

#include <vector>

#include "core/status.h"
#include "plan/pipeline/simulation.h"
#include "plan/pipeline/task_list.h"

namespace plait::plan {

// A time within this share of the best is as good: what it would gain is not worth more activations.
inline constexpr double delay_tolerance = 1e-3;

// A delay for each stage of the request (whose own delays are left aside): of the delays that grow evenly with the
// stage, simulated, the fastest; then as little delay as keeps that time. For large
// pipelines the last part is left out. Fails as pipeline_schedule() and simulate_pipeline() do.
Result<std::vector<int>> least_weight_delays(const PipelineRequest& request, const PipelineCosts& costs);

}  // namespace plait::plan
