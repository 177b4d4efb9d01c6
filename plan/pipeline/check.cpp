#include "plan/pipeline/check.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace plait::plan {
namespace {

using enum PipelineTaskKind;

constexpr std::size_t kinds = 7;
constexpr std::size_t never = static_cast<std::size_t>(-1);

Status wrong(std::size_t stage, const std::string& what) {
  return {Code::invalid, "stage " + std::to_string(stage) + ": " + what};
}

std::size_t index_of(PipelineTaskKind kind) { return static_cast<std::size_t>(kind); }

// Where each task of a stage stands in its list.
class Places {
 public:
  explicit Places(int batches) {
    for (auto& of_kind : places_) of_kind.assign(static_cast<std::size_t>(batches), never);
  }
  std::size_t& of(PipelineTaskKind kind, std::size_t batch) { return places_[index_of(kind)][batch]; }

 private:
  std::array<std::vector<std::size_t>, kinds> places_;
};

struct Rule {
  PipelineTaskKind before, after;
};
constexpr std::array rules = {Rule{receive_activation, forward}, Rule{forward, send_activation},
                              Rule{forward, backward},           Rule{receive_gradient, backward},
                              Rule{backward, send_gradient},     Rule{backward, weight}};

class StageCheck {
 public:
  StageCheck(const PipelineSchedule& schedule, std::size_t stage)
      : schedule_(schedule), stage_(stage), places_(schedule.micro_batches) {}

  Status run() {
    const PipelineTasks& tasks = schedule_.stages[stage_];
    for (std::size_t place = 0; place < tasks.size(); ++place)
      if (Status status = take(tasks[place], place); !status.ok()) return status;
    for (int batch = 0; batch < schedule_.micro_batches; ++batch)
      if (Status status = check_batch(static_cast<std::size_t>(batch)); !status.ok()) return status;
    return {};
  }

 private:
  bool wanted(PipelineTaskKind kind) const {
    const bool first = stage_ == 0, last = stage_ + 1 == schedule_.stages.size();
    if (kind == weight) return schedule_.weights_apart;
    if (kind == receive_activation || kind == send_gradient) return !first;
    if (kind == send_activation || kind == receive_gradient) return !last;
    return true;
  }

  Status take(const PipelineTask& task, std::size_t place) {
    if (index_of(task.kind) >= kinds) return wrong(stage_, "a task of no known kind");
    if (task.micro_batch < 0 || task.micro_batch >= schedule_.micro_batches)
      return wrong(stage_, text(task) + " is of no micro-batch");
    if (!wanted(task.kind)) return wrong(stage_, text(task) + " has no place in it");
    std::size_t& known = places_.of(task.kind, static_cast<std::size_t>(task.micro_batch));
    if (known != never) return wrong(stage_, text(task) + " twice");
    known = place;
    return {};
  }

  Status check_batch(std::size_t batch) {
    const auto named = [&](PipelineTaskKind kind) { return text({kind, static_cast<int>(batch)}); };
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const auto one = static_cast<PipelineTaskKind>(kind);
      if (wanted(one) && places_.of(one, batch) == never) return wrong(stage_, named(one) + " is missing");
    }
    for (const Rule& rule : rules)
      if (wanted(rule.before) && wanted(rule.after) && places_.of(rule.before, batch) > places_.of(rule.after, batch))
        return wrong(stage_, named(rule.after) + " stands before " + named(rule.before));
    return {};
  }

  const PipelineSchedule& schedule_;
  std::size_t stage_;
  Places places_;
};

std::vector<int> batches_of(const PipelineTasks& tasks, PipelineTaskKind kind) {
  std::vector<int> batches;
  for (const PipelineTask& task : tasks)
    if (task.kind == kind) batches.push_back(task.micro_batch);
  return batches;
}

Status check_orders(const PipelineSchedule& schedule) {
  for (std::size_t stage = 0; stage + 1 < schedule.stages.size(); ++stage) {
    const PipelineTasks &here = schedule.stages[stage], &next = schedule.stages[stage + 1];
    if (batches_of(here, send_activation) != batches_of(next, receive_activation))
      return wrong(stage + 1, "receives activations in another order than they are sent");
    if (batches_of(next, send_gradient) != batches_of(here, receive_gradient))
      return wrong(stage, "receives gradients in another order than they are sent");
  }
  return {};
}

// Runs all lists without time: a stage goes on until it needs what was not sent yet.
class Progress {
 public:
  explicit Progress(const PipelineSchedule& schedule)
      : schedule_(schedule), at_(schedule.stages.size()), activations_(at_.size()), gradients_(at_.size()) {}

  Status run() {
    std::vector<std::size_t> awake;
    for (std::size_t stage = at_.size(); stage-- > 0;) awake.push_back(stage);
    while (!awake.empty()) {
      const std::size_t stage = awake.back();
      awake.pop_back();
      const bool moved = advance(stage);
      if (!moved) continue;
      if (stage > 0) awake.push_back(stage - 1);
      if (stage + 1 < at_.size()) awake.push_back(stage + 1);
    }
    for (std::size_t stage = 0; stage < at_.size(); ++stage)
      if (at_[stage] < schedule_.stages[stage].size())
        return wrong(stage, "waits for ever at " + text(schedule_.stages[stage][at_[stage]]));
    return {};
  }

 private:
  // Transfers of one kind keep their order on both sides, so that counting them is enough.
  struct Count {
    int sent = 0, taken = 0;
  };

  bool advance(std::size_t stage) {
    const std::size_t before = at_[stage];
    const PipelineTasks& tasks = schedule_.stages[stage];
    while (at_[stage] < tasks.size() && step(stage, tasks[at_[stage]].kind)) ++at_[stage];
    return at_[stage] > before;
  }

  bool step(std::size_t stage, PipelineTaskKind kind) {
    if (kind == send_activation) ++activations_[stage].sent;
    if (kind == send_gradient) ++gradients_[stage - 1].sent;
    if (kind == receive_activation) return take(activations_[stage - 1]);
    if (kind == receive_gradient) return take(gradients_[stage]);
    return true;
  }

  static bool take(Count& count) {
    if (count.taken == count.sent) return false;
    ++count.taken;
    return true;
  }

  const PipelineSchedule& schedule_;
  std::vector<std::size_t> at_;
  std::vector<Count> activations_, gradients_;  // by the boundary behind the stage
};

}  // namespace

std::vector<int> peak_activations(const PipelineSchedule& schedule) {
  const PipelineTaskKind end = schedule.weights_apart ? weight : backward;
  std::vector<int> peaks;
  for (const PipelineTasks& tasks : schedule.stages) {
    int held = 0, peak = 0;
    for (const PipelineTask& task : tasks) {
      if (task.kind == forward) peak = std::max(peak, ++held);
      if (task.kind == end) --held;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

Status check_pipeline(const PipelineSchedule& schedule, const std::vector<int>& most_activations) {
  if (schedule.micro_batches < 1 || schedule.stages.empty())
    return {Code::invalid, "expected a stage and a micro-batch at least"};
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage)
    if (Status status = StageCheck(schedule, stage).run(); !status.ok()) return status;
  if (Status status = check_orders(schedule); !status.ok()) return status;
  if (Status status = Progress(schedule).run(); !status.ok()) return status;
  if (most_activations.empty()) return {};
  if (most_activations.size() != schedule.stages.size())
    return {Code::invalid, "expected a bound of activations for each stage"};
  const std::vector<int> peaks = peak_activations(schedule);
  for (std::size_t stage = 0; stage < peaks.size(); ++stage)
    if (peaks[stage] > most_activations[stage])
      return wrong(stage, "holds the activations of " + std::to_string(peaks[stage]) +
                              " micro-batches, expected at most " + std::to_string(most_activations[stage]));
  return {};
}

}  // namespace plait::plan
