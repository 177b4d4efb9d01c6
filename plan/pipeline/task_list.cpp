#include "plan/pipeline/task_list.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace plait::plan {
namespace {

using enum PipelineTaskKind;

constexpr std::array<std::string_view, 7> names = {
    "forward", "backward", "weight", "receive_activation", "send_activation", "receive_gradient", "send_gradient"};
constexpr std::array<std::string_view, 7> short_names = {"F", "B", "W", "RA", "SA", "RG", "SG"};

std::string range(int most) { return "expected 1 to " + std::to_string(most); }

Status check(const PipelineRequest& request) {
  if (request.stages < 1 || request.stages > most_pipeline_stages)
    return {Code::invalid, "stages: " + range(most_pipeline_stages)};
  if (request.micro_batches < 1 || request.micro_batches > most_micro_batches)
    return {Code::invalid, "micro-batches: " + range(most_micro_batches)};
  if (std::int64_t{request.stages} * request.micro_batches > most_stage_batches)
    return {Code::invalid, "stages times micro-batches: " + range(most_stage_batches)};
  if (request.weight_delays.empty()) return {};
  if (request.weight_delays.size() != static_cast<std::size_t>(request.stages))
    return {Code::invalid, "weight delays: expected one a stage"};
  for (const int delay : request.weight_delays)
    if (delay < 0) return {Code::invalid, "weight delays: expected 0 or more"};
  return {};
}

// One stage's list, as it grows.
class StageList {
 public:
  StageList(const PipelineRequest& request, int stage)
      : batches_(request.micro_batches),
        first_(stage == 0),
        last_(stage == request.stages - 1),
        delay_(request.weight_delays.empty() ? -1 : request.weight_delays[static_cast<std::size_t>(stage)]) {}

  // Warm up, then a backward and a forward task in turn for as long as there are forward tasks.
  PipelineTasks fill(int warm) {
    const int early = std::min(warm, batches_);
    for (int batch = 0; batch < early; ++batch) forward(batch);
    for (int batch = 0; batch < batches_; ++batch) {
      backward(batch);
      if (early + batch < batches_) forward(early + batch);
    }
    if (delay_ > 0)
      for (int batch = std::max(0, batches_ - delay_); batch < batches_; ++batch) add(weight, batch);
    return std::move(tasks_);
  }

 private:
  void add(PipelineTaskKind kind, int batch) { tasks_.push_back({kind, batch}); }

  void forward(int batch) {
    if (!first_) add(receive_activation, batch);
    add(PipelineTaskKind::forward, batch);
    if (!last_) add(send_activation, batch);
  }

  void backward(int batch) {
    if (!last_) add(receive_gradient, batch);
    add(PipelineTaskKind::backward, batch);
    if (!first_) add(send_gradient, batch);
    if (delay_ >= 0 && batch >= delay_) add(weight, batch - delay_);
  }

  int batches_;
  bool first_, last_;
  int delay_;  // -1: the weights are not apart
  PipelineTasks tasks_;
};

}  // namespace

std::string_view name(PipelineTaskKind kind) { return names[static_cast<std::size_t>(kind)]; }
std::string_view short_name(PipelineTaskKind kind) { return short_names[static_cast<std::size_t>(kind)]; }

bool computes(PipelineTaskKind kind) { return kind == forward || kind == backward || kind == weight; }
bool sends(PipelineTaskKind kind) { return kind == send_activation || kind == send_gradient; }

std::string text(const PipelineTask& task) {
  return std::string(short_name(task.kind)) + std::to_string(task.micro_batch);
}

int warm_up(PipelineOrder order, int stages, int stage) {
  const int behind = stages - stage - 1;
  return order == PipelineOrder::eager ? 2 * behind + 1 : behind + 1;
}

Result<PipelineSchedule> pipeline_schedule(const PipelineRequest& request) {
  if (Status status = check(request); !status.ok()) return status;
  PipelineSchedule schedule{request.micro_batches, !request.weight_delays.empty(), {}};
  for (int stage = 0; stage < request.stages; ++stage)
    schedule.stages.push_back(StageList(request, stage).fill(warm_up(request.order, request.stages, stage)));
  return schedule;
}

std::vector<int> activation_bounds(const PipelineRequest& request) {
  std::vector<int> bounds;
  for (int stage = 0; stage < request.stages; ++stage) {
    const std::int64_t delay =
        request.weight_delays.empty() ? 0 : request.weight_delays[static_cast<std::size_t>(stage)];
    const std::int64_t held = warm_up(request.order, request.stages, stage) + delay;
    bounds.push_back(static_cast<int>(std::min<std::int64_t>(held, request.micro_batches)));
  }
  return bounds;
}

}  // namespace plait::plan
