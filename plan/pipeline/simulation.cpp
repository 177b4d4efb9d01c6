#include "plan/pipeline/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "plan/pipeline/check.h"

namespace plait::plan {
namespace {

using enum PipelineTaskKind;

using Nanoseconds = std::int64_t;

constexpr double nanosecond = 1e-9;
Nanoseconds whole(double seconds) { return std::llround(seconds / nanosecond); }
double seconds_of(Nanoseconds time) { return static_cast<double>(time) * nanosecond; }

// One direction of a boundary; transfers of one keep their order.
struct Link {
  std::size_t sender, receiver;
  PipelineTaskKind kind;  // of the send
};

std::size_t link_number(std::size_t stage, PipelineTaskKind kind) {
  switch (kind) {
    case send_activation:
      return 2 * stage;
    case receive_activation:
      return 2 * (stage - 1);
    case send_gradient:
      return 2 * (stage - 1) + 1;
    default:  // receive_gradient
      return 2 * stage + 1;
  }
}

Link link_of(std::size_t number) {
  const std::size_t boundary = number / 2;
  if (number % 2 == 0) return {boundary, boundary + 1, send_activation};
  return {boundary + 1, boundary, send_gradient};
}

class Simulation {
 public:
  Simulation(const PipelineSchedule& schedule, const PipelineCosts& costs)
      : schedule_(schedule), costs_(costs), stages_(schedule.stages.size()), links_(2 * (schedule.stages.size() - 1)) {
    for (LinkState& link : links_) link.transfers.resize(static_cast<std::size_t>(schedule.micro_batches));
  }

  Result<PipelineRun> run() {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) advance(stage);
    start_transfers();
    while (!events_.empty()) {
      now_ = events_.top().time;
      awake_.clear();
      for (; !events_.empty() && events_.top().time == now_; events_.pop()) happen(events_.top());
      for (const std::size_t stage : awake_) advance(stage);
      start_transfers();
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      if (stages_[stage].at < schedule_.stages[stage].size())
        return Status(Code::invalid, "stage " + std::to_string(stage) + " waits for ever at " +
                                         text(schedule_.stages[stage][stages_[stage].at]));
    return result();
  }

 private:
  struct StageState {
    std::size_t at = 0;
    bool computing = false;
    Nanoseconds computed = 0, port_free[2] = {0, 0};  // port_free: of sending, of receiving
    int inputs = 0;
    PipelineStageRun run;
  };

  struct Transfer {
    bool sender_there = false, receiver_there = false, arrived = false;
  };
  struct Waiting {
    Nanoseconds ready;
    int micro_batch;
  };
  struct LinkState {
    std::vector<Transfer> transfers;
    std::deque<Waiting> waiting;
  };

  enum class What { computed, freed, arrived };
  struct Event {
    Nanoseconds time;
    std::uint64_t order;
    What what;
    std::size_t where;  // stage or link
    int micro_batch;
    bool operator>(const Event& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
  };

  void later(Nanoseconds time, What what, std::size_t where, int micro_batch) {
    events_.push({time, ++order_, what, where, micro_batch});
  }

  void happen(const Event& event) {
    if (event.what == What::computed) {
      stages_[event.where].computing = false;
      ++stages_[event.where].at;
      awake_.push_back(event.where);
      return;
    }
    const Link link = link_of(event.where);
    if (event.what == What::freed) {
      touch_ports(link.sender);
      touch_ports(link.receiver);
      return;
    }
    links_[event.where].transfers[static_cast<std::size_t>(event.micro_batch)].arrived = true;
    StageState& receiver = stages_[link.receiver];
    receiver.run.peak_inputs = std::max(receiver.run.peak_inputs, ++receiver.inputs);
    awake_.push_back(link.receiver);
    if (!costs_.overlap) awake_.push_back(link.sender);
  }

  // The links that may have waited for a port of the stage.
  void touch_ports(std::size_t stage) {
    if (stage > 0)
      for (const PipelineTaskKind kind : {receive_activation, send_gradient})
        touched_.push_back(link_number(stage, kind));
    if (stage + 1 < stages_.size())
      for (const PipelineTaskKind kind : {send_activation, receive_gradient})
        touched_.push_back(link_number(stage, kind));
  }

  // Goes on until the stage computes or waits.
  void advance(std::size_t stage) {
    StageState& state = stages_[stage];
    const PipelineTasks& tasks = schedule_.stages[stage];
    while (!state.computing && state.at < tasks.size()) {
      if (computes(tasks[state.at].kind))
        compute(stage, tasks[state.at]);
      else if (!(costs_.overlap ? pass(stage, tasks[state.at]) : pass_together(stage)))
        return;
    }
  }

  void compute(std::size_t stage, const PipelineTask& task) {
    StageState& state = stages_[stage];
    const bool first = stage == 0, last = stage + 1 == stages_.size();
    if ((task.kind == forward && !first) || (task.kind == backward && !last)) --state.inputs;
    const Nanoseconds takes = whole(seconds(stage, task.kind));
    state.computing = true;
    state.computed += takes;
    state.run.tasks.push_back({task, seconds_of(now_), seconds_of(now_ + takes)});
    later(now_ + takes, What::computed, stage, task.micro_batch);
  }

  double seconds(std::size_t stage, PipelineTaskKind kind) const {
    const PipelineStageCost& cost = costs_.stages[stage];
    if (kind == forward) return cost.forward;
    if (kind == weight) return cost.weight;
    return schedule_.weights_apart ? cost.backward : cost.backward + cost.weight;
  }

  // A transfer that overlaps: nobody waits to send.
  bool pass(std::size_t stage, const PipelineTask& task) {
    const std::size_t link = link_number(stage, task.kind);
    if (sends(task.kind))
      post(link, task.micro_batch);
    else if (!transfer(link, task).arrived)
      return false;
    ++stages_[stage].at;
    return true;
  }

  // All transfers up to the next computing task.
  bool pass_together(std::size_t stage) {
    const PipelineTasks& tasks = schedule_.stages[stage];
    std::size_t end = stages_[stage].at;
    bool all = true;
    for (; end < tasks.size() && !computes(tasks[end].kind); ++end) {
      const std::size_t link = link_number(stage, tasks[end].kind);
      Transfer& one = transfer(link, tasks[end]);
      bool& there = sends(tasks[end].kind) ? one.sender_there : one.receiver_there;
      if (!std::exchange(there, true) && one.sender_there && one.receiver_there) post(link, tasks[end].micro_batch);
      all = all && one.arrived;
    }
    if (all) stages_[stage].at = end;
    return all;
  }

  Transfer& transfer(std::size_t link, const PipelineTask& task) {
    return links_[link].transfers[static_cast<std::size_t>(task.micro_batch)];
  }

  void post(std::size_t link, int micro_batch) {
    links_[link].waiting.push_back({now_, micro_batch});
    touched_.push_back(link);
  }

  // Of the links where something has changed, those that have been ready for longest first.
  void start_transfers() {
    std::erase_if(touched_, [&](std::size_t link) { return links_[link].waiting.empty(); });
    const auto rank = [&](std::size_t link) {
      return std::tuple(links_[link].waiting.front().ready, link_of(link).sender, link % 2);
    };
    std::sort(touched_.begin(), touched_.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::size_t link : touched_) start(link);
    touched_.clear();
  }

  void start(std::size_t number) {
    const Link link = link_of(number);
    Nanoseconds& out = stages_[link.sender].port_free[0];
    Nanoseconds& in = stages_[link.receiver].port_free[costs_.half_duplex ? 0 : 1];
    if (out > now_ || in > now_) return;
    const PipelineBoundary& boundary = costs_.boundaries[number / 2];
    const TransferCost& cost = link.kind == send_activation ? boundary.activation : boundary.gradient;
    const int micro_batch = links_[number].waiting.front().micro_batch;
    links_[number].waiting.pop_front();
    const Nanoseconds free = now_ + whole(cost.occupied), there = free + whole(cost.latency);
    out = in = free;
    stages_[link.sender].run.tasks.push_back({{link.kind, micro_batch}, seconds_of(now_), seconds_of(there)});
    later(free, What::freed, number, micro_batch);
    later(there, What::arrived, number, micro_batch);
  }

  PipelineRun result() {
    PipelineRun run{seconds_of(now_), 0, {}};
    const std::vector<int> peaks = peak_activations(schedule_);
    Nanoseconds computed = 0;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      computed += stages_[stage].computed;
      PipelineStageRun& one = run.stages.emplace_back(std::move(stages_[stage].run));
      one.computing = seconds_of(stages_[stage].computed);
      one.peak_activations = peaks[stage];
    }
    const double all = static_cast<double>(now_) * static_cast<double>(stages_.size());
    run.idle = all > 0 ? 1 - static_cast<double>(computed) / all : 0;
    return run;
  }

  const PipelineSchedule& schedule_;
  const PipelineCosts& costs_;
  std::vector<StageState> stages_;
  std::vector<LinkState> links_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Nanoseconds now_ = 0;
  std::vector<std::size_t> awake_, touched_;
};

Status check_times(const PipelineCosts& costs) {
  const auto wrong = [](double seconds) { return !(seconds >= 0 && seconds <= most_pipeline_task_seconds); };
  for (const PipelineStageCost& stage : costs.stages)
    if (wrong(stage.forward) || wrong(stage.backward) || wrong(stage.weight))
      return {Code::invalid, "a stage's task: expected 0 to 1000 seconds"};
  for (const PipelineBoundary& boundary : costs.boundaries)
    for (const TransferCost& cost : {boundary.activation, boundary.gradient})
      if (wrong(cost.occupied) || wrong(cost.latency)) return {Code::invalid, "a transfer: expected 0 to 1000 seconds"};
  return {};
}

}  // namespace

TransferCost transfer_cost(const LinkLevel& link, double bytes) {
  const double port = link.port_seconds_per_message + bytes * link.port_seconds_per_byte;
  const double processor = bytes * link.cpu_seconds_per_byte;
  return {std::max(port, processor), link.latency + 2 * link.overhead};
}

PipelineCosts even_costs(int stages, const PipelineStageCost& stage, const PipelineBoundary& boundary) {
  PipelineCosts costs;
  costs.stages.assign(static_cast<std::size_t>(stages), stage);
  costs.boundaries.assign(static_cast<std::size_t>(stages - 1), boundary);
  return costs;
}

Result<PipelineRun> simulate_pipeline(const PipelineSchedule& schedule, const PipelineCosts& costs) {
  if (costs.stages.size() != schedule.stages.size() || costs.boundaries.size() + 1 != schedule.stages.size())
    return Status(Code::invalid, "expected a cost for each stage and each boundary");
  if (Status status = check_times(costs); !status.ok()) return status;
  if (Status status = check_pipeline(schedule); !status.ok()) return status;
  return Simulation(schedule, costs).run();
}

double least_pipeline_seconds(const PipelineCosts& costs, int micro_batches, bool weights_apart) {
  double least = 0, reach = 0, back = 0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const PipelineStageCost& cost = costs.stages[stage];
    // The gradients of weights may all stand behind the last gradients that leave.
    const double computing = micro_batches * (cost.forward + cost.backward);
    const double weights = micro_batches * cost.weight;
    const double until_sent = reach + computing + (weights_apart ? 0 : weights) + back;
    least = std::max({least, reach + computing + weights, until_sent});
    if (stage + 1 == costs.stages.size()) break;
    const auto taken = [](const TransferCost& transfer) { return transfer.occupied + transfer.latency; };
    reach += cost.forward + taken(costs.boundaries[stage].activation);
    back += taken(costs.boundaries[stage].gradient) + cost.backward + (weights_apart ? 0 : cost.weight);
  }
  return least;
}

}  // namespace plait::plan
