// Whether a pipeline's task lists can be run and do an iteration's work. Pure.
#pragma once

#include <vector>

#include "core/status.h"
#include "plan/pipeline/task_list.h"

namespace plait::plan {

// The most micro-batches whose activations each stage holds at once: from the forward task to the backward task, or
// to the weight task where there is one. It follows from the lists alone. Precondition: check_pipeline() is ok without
// bounds.
std::vector<int> peak_activations(const PipelineSchedule& schedule);

// That each stage computes each micro-batch exactly once, forward before backward before weight; that it receives and
// sends what this needs and makes, at the right place; that both ends of each pair of stages transfer in the same
// order; that, transfers being buffered, no stage waits for ever; and that no stage holds more activations than its
// bound, where bounds are given (one a stage). Fails (invalid) with the stage, the task and what is wrong.
Status check_pipeline(const PipelineSchedule& schedule, const std::vector<int>& most_activations = {});

}  // namespace plait::plan
