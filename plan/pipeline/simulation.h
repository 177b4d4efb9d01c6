// What an iteration of a pipeline takes, for given times of computing and of transferring. Pure and deterministic:
// time is counted in whole nanoseconds.
//
// A stage computes one task at a time. It has a port to send by and one to receive by, each of which carries one
// transfer at a time, the one that was ready first (then the lower sending stage's, then activations). Everything else
// that transfers wait for stands in the task lists.
#pragma once

#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"
#include "plan/pipeline/task_list.h"

namespace plait::plan {

// Seconds a micro-batch.
struct PipelineStageCost {
  double forward = 0;
  double backward = 0;  // the gradients of the activations
  double weight = 0;    // the gradients of the weights; where they are not apart, part of the backward task
};

// Seconds. A transfer that begins at t leaves its ports free at t + occupied, and is there at t + occupied + latency.
struct TransferCost {
  double occupied = 0, latency = 0;
};
// A message of so many bytes between children of the level, alone, over all their rails: an overhead at either end,
// then the slower of port and processor.
TransferCost transfer_cost(const LinkLevel& link, double bytes);

// Between a stage and the next.
struct PipelineBoundary {
  TransferCost activation, gradient;
};

struct PipelineCosts {
  std::vector<PipelineStageCost> stages;
  std::vector<PipelineBoundary> boundaries;  // one less
  bool half_duplex = false;                  // a stage sends and receives by the same port
  // False: a stage does nothing else during its transfers. Those between two of its computing tasks run together, and a
  // transfer begins when both its ends have come to it.
  bool overlap = true;
};

// The same stages for every micro-batch, the same transfers at every boundary.
PipelineCosts even_costs(int stages, const PipelineStageCost& stage, const PipelineBoundary& boundary);

struct TimedPipelineTask {
  PipelineTask task;  // no receive: the send tells when a transfer went and when it was there
  double begin = 0, end = 0;
};

struct PipelineStageRun {
  double computing = 0;      // seconds
  int peak_activations = 0;  // micro-batches whose activations it holds
  int peak_inputs = 0;       // tensors that have arrived and wait to be taken
  std::vector<TimedPipelineTask> tasks;
};

struct PipelineRun {
  double seconds = 0;  // from the first task's begin to the end of all
  double idle = 0;     // the bubble: of all stages' time, the share without computing
  std::vector<PipelineStageRun> stages;
};

// The largest time of one task or transfer.
inline constexpr double most_pipeline_task_seconds = 1000;

// Fails (invalid) where the costs are of another number of stages, a time is negative or too long, or stages would
// wait for one another for ever (which check_pipeline() excludes only for transfers that overlap).
Result<PipelineRun> simulate_pipeline(const PipelineSchedule& schedule, const PipelineCosts& costs);

// No order of the same tasks takes less: for each stage, until its first micro-batch can have reached it, all its work,
// and until the last one's gradients can have reached the first stage.
double least_pipeline_seconds(const PipelineCosts& costs, int micro_batches, bool weights_apart);

}  // namespace plait::plan
