// A pipeline's iteration as a reference: every stage and every transfer is looked at in every nanosecond.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "plan/pipeline/simulation.h"
#include "plan/pipeline/task_list.h"

namespace plait::plan {

class PipelineTicks {
 public:
  PipelineTicks(const PipelineSchedule& schedule, const PipelineCosts& costs)
      : schedule_(schedule), costs_(costs), at_(stages(), 0), busy_until_(stages(), -1) {}

  // Nothing where stages wait for one another for ever. Every task must take a nanosecond or more.
  std::optional<long> run() {
    for (long now = 0, quiet = 0; quiet < 1000; ++now, ++quiet) {
      if (tick(now)) quiet = 0;
      if (finished() && under_way_.empty()) return now;
    }
    return std::nullopt;
  }

 private:
  // The sending stage, 0 for activations and 1 for gradients, the micro-batch.
  using Tensor = std::tuple<int, int, int>;

  std::size_t stages() const { return schedule_.stages.size(); }
  static long ticks(double seconds) { return std::lround(seconds * 1e9); }

  bool finished() const {
    for (std::size_t stage = 0; stage < stages(); ++stage)
      if (at_[stage] < schedule_.stages[stage].size()) return false;
    return true;
  }

  bool tick(long now) {
    bool changed = end_transfers(now);
    for (std::size_t stage = 0; stage < stages(); ++stage)
      if (busy_until_[stage] == now) {
        ++at_[stage];
        busy_until_[stage] = -1;
        changed = true;
      }
    for (std::size_t stage = 0; stage < stages(); ++stage)
      while (step(static_cast<int>(stage), now)) changed = true;
    return start_transfers(now) || changed || !under_way_.empty() ||
           std::any_of(busy_until_.begin(), busy_until_.end(), [](long until) { return until >= 0; });
  }

  bool end_transfers(long now) {
    return std::erase_if(under_way_, [&](const auto& one) {
             if (one.second != now) return false;
             there_.insert(one.first);
             return true;
           }) > 0;
  }

  Tensor tensor(int stage, const PipelineTask& task) const {
    switch (task.kind) {
      case PipelineTaskKind::send_activation:
        return {stage, 0, task.micro_batch};
      case PipelineTaskKind::receive_activation:
        return {stage - 1, 0, task.micro_batch};
      case PipelineTaskKind::send_gradient:
        return {stage, 1, task.micro_batch};
      default:
        return {stage + 1, 1, task.micro_batch};
    }
  }

  bool step(int stage, long now) {
    const auto index = static_cast<std::size_t>(stage);
    const PipelineTasks& tasks = schedule_.stages[index];
    if (busy_until_[index] >= 0 || at_[index] == tasks.size()) return false;
    const PipelineTask& task = tasks[at_[index]];
    if (computes(task.kind)) {
      const PipelineStageCost& cost = costs_.stages[index];
      double seconds = task.kind == PipelineTaskKind::forward  ? cost.forward
                       : task.kind == PipelineTaskKind::weight ? cost.weight
                                                               : cost.backward;
      if (task.kind == PipelineTaskKind::backward && !schedule_.weights_apart) seconds += cost.weight;
      busy_until_[index] = now + ticks(seconds);
      return true;
    }
    return costs_.overlap ? pass(stage, task, now) : meet(stage, now);
  }

  bool pass(int stage, const PipelineTask& task, long now) {
    if (sends(task.kind))
      offer(tensor(stage, task), now);
    else if (!there_.contains(tensor(stage, task)))
      return false;
    ++at_[static_cast<std::size_t>(stage)];
    return true;
  }

  bool meet(int stage, long now) {
    const PipelineTasks& tasks = schedule_.stages[static_cast<std::size_t>(stage)];
    std::size_t end = at_[static_cast<std::size_t>(stage)];
    bool all = true;
    for (; end < tasks.size() && !computes(tasks[end].kind); ++end) {
      const Tensor one = tensor(stage, tasks[end]);
      met_[one].insert(sends(tasks[end].kind));
      if (met_[one].size() == 2) offer(one, now);
      all = all && there_.contains(one);
    }
    if (all) at_[static_cast<std::size_t>(stage)] = end;
    return all;
  }

  void offer(const Tensor& one, long now) {
    if (known_.insert(one).second) waiting_.insert({now, one});
  }

  bool start_transfers(long now) {
    bool any = false;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto [sender, kind, micro_batch] = next->second;
      const int receiver = kind == 0 ? sender + 1 : sender - 1;
      long& out = port_[{sender, 0}];
      long& in = port_[{receiver, costs_.half_duplex ? 0 : 1}];
      if (out > now || in > now) {
        ++next;
        continue;
      }
      const PipelineBoundary& boundary = costs_.boundaries[static_cast<std::size_t>(std::min(sender, receiver))];
      const TransferCost& cost = kind == 0 ? boundary.activation : boundary.gradient;
      out = in = now + ticks(cost.occupied);
      under_way_[next->second] = out + ticks(cost.latency);
      next = waiting_.erase(next);
      any = true;
    }
    return any;
  }

  const PipelineSchedule& schedule_;
  const PipelineCosts& costs_;
  std::vector<std::size_t> at_;
  std::vector<long> busy_until_;
  std::set<Tensor> there_, known_;
  std::map<Tensor, std::set<bool>> met_;
  std::set<std::pair<long, Tensor>> waiting_;  // in the order of starting
  std::map<Tensor, long> under_way_;           // until
  std::map<std::pair<int, int>, long> port_;   // free from
};

}  // namespace plait::plan
