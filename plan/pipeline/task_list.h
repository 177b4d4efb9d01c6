// What each stage of a training pipeline does in one iteration, in its order: the computing of its micro-batches, and
// the transfers (reshardings from one stage's mesh to the next) that bring what it needs and take away what it made.
// Pure; values that threads may share.
//
// Source: "On Optimizing the Communication of Model Parallelism", section 4: eager-1F1B, and backward-weight delaying.
// 1F1B is that of Narayanan et al. 2021, which the paper starts from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace plait::plan {

enum class PipelineTaskKind {
  forward,
  backward,  // the whole of it; where weights are apart, the gradients of the activations alone
  weight,    // the gradients of the weights
  receive_activation,
  send_activation,
  receive_gradient,
  send_gradient,
};
std::string_view name(PipelineTaskKind kind);        // "forward", "send_activation"
std::string_view short_name(PipelineTaskKind kind);  // "F", "SA"

struct PipelineTask {
  PipelineTaskKind kind = PipelineTaskKind::forward;
  int micro_batch = 0;
  bool operator==(const PipelineTask&) const = default;
};
bool computes(PipelineTaskKind kind);
bool sends(PipelineTaskKind kind);
std::string text(const PipelineTask& task);  // "F3"

// A stage's tasks in the order in which it does them. A transfer stands where it is needed: a receive before the task
// that takes the tensor, a send behind the one that made it. The runner may start receives earlier, as long as
// those of one kind keep their order.
using PipelineTasks = std::vector<PipelineTask>;

struct PipelineSchedule {
  int micro_batches = 0;
  bool weights_apart = false;  // weight tasks exist
  std::vector<PipelineTasks> stages;
};

enum class PipelineOrder {
  one_forward_one_backward,  // stage i of P warms up with P - i micro-batches
  eager,                     // with 2 (P - i - 1) + 1
};
// How many forward tasks stand before the stage's first backward one, where there are as many micro-batches.
int warm_up(PipelineOrder order, int stages, int stage);

struct PipelineRequest {
  int stages = 1, micro_batches = 1;
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  // Empty: the backward task does all. Else one number a stage: the gradients of a micro-batch's weights stand behind
  // the backward task of the micro-batch that is so many later, the last ones at the end. 0: right behind their own.
  std::vector<int> weight_delays = {};
};

// The largest requests that are understood: stages, micro-batches, and both multiplied.
inline constexpr int most_pipeline_stages = 1024, most_micro_batches = 16384, most_stage_batches = 16384;

// Fails (invalid) where a number is out of its range or there is not a delay a stage.
Result<PipelineSchedule> pipeline_schedule(const PipelineRequest& request);

// Micro-batches whose activations a stage of this schedule holds at most: its warm-up and its delay, or all of them.
// Precondition: pipeline_schedule() accepts the request.
std::vector<int> activation_bounds(const PipelineRequest& request);

}  // namespace plait::plan
