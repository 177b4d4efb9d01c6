// The ways to run a pipeline that are compared with one another, and what each is predicted to take. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/pipeline/simulation.h"
#include "plan/pipeline/task_list.h"

namespace plait::plan {

struct PipelineVariant {
  std::string_view name;
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  bool delays_weights = false;
  bool overlap = true;
};

// The first is what the others are compared with. The eager order comes without overlap nowhere: a stage that waits for
// its transfers cannot run ahead.
inline constexpr std::array<PipelineVariant, 5> pipeline_variants = {{
    {.name = "1f1b-blocking", .overlap = false},
    {.name = "1f1b"},
    {.name = "1f1b-delayed", .delays_weights = true},
    {.name = "eager-1f1b", .order = PipelineOrder::eager},
    {.name = "eager-1f1b-delayed", .order = PipelineOrder::eager, .delays_weights = true},
}};
// Nullptr where there is none.
const PipelineVariant* pipeline_variant_named(std::string_view name);
std::string join_pipeline_variants(std::string_view between = ", ");

struct PipelineCase {
  int stages = 1, micro_batches = 1;
  PipelineCosts costs;  // their overlap is the variant's
  std::vector<PipelineBoundary> one_byte_boundaries;
};

struct PipelineEstimate {
  std::vector<int> weight_delays;  // empty: not apart
  PipelineSchedule schedule;
  PipelineRun run;
  double one_byte_seconds = 0;  // the same lists with one byte per transfer: the upper bound
  double least_seconds = 0;     // no order of the same tasks takes less
};

// Fails as pipeline_schedule() and simulate_pipeline() do.
Result<PipelineEstimate> estimate_pipeline(const PipelineVariant& variant, const PipelineCase& question);

}  // namespace plait::plan
