#include "tests/plan/simulation.h"

#include <algorithm>
#include <queue>
#include <vector>

#include "plan/lower/block_sizes.h"

namespace plait::plan {

namespace {

bool is_message(StepKind kind) { return kind != StepKind::copy && kind != StepKind::reduce; }

// A step of one rank, ready for the simulation.
struct Task {
  const Step* step;
  double bytes = 0;
  std::uint32_t open = 0;     // predecessors not complete
  double ready = 0;           // when the last of them was
  std::uint32_t partner = 0;  // of a message: the other side's step
  double arrival = -1;        // of a receive: when its data begins to be there
  double complete_from = 0;   // of a receive: when the last of it is there
  bool posted = false;
};

class Simulation {
 public:
  Simulation(const SimulatedPlan& plan, const Call& call, const Machine& machine)
      : plan_(plan), machine_(machine), placement_(dense_placement(call)), sizes_(*plan.semantics, placement_) {
    const std::size_t ranks = plan.schedules.size();
    cpu_free_.resize(ranks);
    nic_out_.resize(static_cast<std::size_t>(plan.hierarchy->nodes()));
    nic_in_.resize(static_cast<std::size_t>(plan.hierarchy->nodes()));
    for (BlockId block = 0; block < plan.semantics->blocks(); ++block)
      block_bytes_.push_back(static_cast<double>(sizes_.bytes(block)));
    for (std::size_t rank = 0; rank < ranks; ++rank) add_rank(rank);
    match();
  }

  double run() {
    for (std::size_t rank = 0; rank < tasks_.size(); ++rank)
      for (std::uint32_t i = 0; i < tasks_[rank].size(); ++i)
        if (tasks_[rank][i].open == 0) push(0, rank, i);
    double last = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      last = std::max(last, execute(event));
    }
    if (machine_.ranks_per_core > 1) last += work_ * machine_.ranks_per_core / static_cast<double>(tasks_.size());
    return last;
  }

 private:
  struct Event {
    double time;
    std::uint64_t sequence;
    std::size_t rank;
    std::uint32_t task;
    bool at_receiver = false;  // the first byte of a network message reaches the receive `task`'s NIC
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  void add_rank(std::size_t rank) {
    const Schedule& schedule = plan_.schedules[rank];
    auto& tasks = tasks_.emplace_back(schedule.steps.size());
    auto& waiting = waiting_.emplace_back(schedule.steps.size());
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      tasks[i].step = &step;
      tasks[i].bytes = bytes_of(rank, schedule, step.kind == StepKind::send ? step.source : step.destination);
      tasks[i].open = step.after.count;
      for (std::uint32_t k = 0; k < step.after.count; ++k) waiting[schedule.after[step.after.first + k]].push_back(i);
    }
  }

  double bytes_of(std::size_t rank, const Schedule& schedule, RunList list) const {
    const Semantics& semantics = *plan_.semantics;
    const int r = static_cast<int>(rank);
    double bytes = 0;
    for (std::uint32_t i = list.first; i < list.first + list.count; ++i) {
      const CellRun& run = schedule.runs[i];
      for (std::uint32_t k = 0, cell = run.first; k < run.count; cell = run.cell(++k))
        bytes += block_bytes_[run.space == Space::scratch ? schedule.scratch[cell]
                              : run.space == Space::input ? semantics.input_block(r, cell)
                                                          : semantics.output_block(r, cell)];
    }
    return bytes;
  }

  // Pairs the k-th send of each lane with the k-th receive.
  void match() {
    const std::size_t ranks = tasks_.size();
    std::vector<std::vector<std::uint32_t>> sends(ranks), receives(ranks);
    for (std::size_t sender = 0; sender < ranks; ++sender) {
      for (std::uint32_t i = 0; i < tasks_[sender].size(); ++i) {
        const Step& step = *tasks_[sender][i].step;
        if (step.kind == StepKind::send) sends[static_cast<std::size_t>(step.peer)].push_back(i);
      }
      for (std::size_t receiver = 0; receiver < ranks; ++receiver) {
        if (sends[receiver].empty()) continue;
        std::size_t next = 0;
        for (std::uint32_t i = 0; i < tasks_[receiver].size() && next < sends[receiver].size(); ++i) {
          Task& task = tasks_[receiver][i];
          if (!is_message(task.step->kind) || task.step->kind == StepKind::send ||
              task.step->peer != static_cast<int>(sender))
            continue;
          task.partner = sends[receiver][next++];
          tasks_[sender][task.partner].partner = i;
        }
        sends[receiver].clear();
      }
    }
  }

  void push(double time, std::size_t rank, std::uint32_t task, bool at_receiver = false) {
    events_.push({time, sequence_++, rank, task, at_receiver});
  }

  // Carries out a task that may start, or a receive whose data has arrived; returns when it ends.
  double execute(const Event& event) {
    Task& task = tasks_[event.rank][event.task];
    if (event.at_receiver) return take_from_wire(event, task);
    switch (task.step->kind) {
      case StepKind::send:
        return send(event, task);
      case StepKind::recv:
      case StepKind::recv_reduce:
        return receive(event, task);
      default: {
        const double rate =
            task.step->kind == StepKind::copy ? machine_.copy_seconds_per_byte : machine_.reduce_seconds_per_byte;
        return finish(event, compute(event.rank, event.time, rate * task.bytes));
      }
    }
  }

  static double occupy(double& free_at, double from, double duration) {
    free_at = std::max(free_at, from) + duration;
    return free_at;
  }

  double compute(std::size_t rank, double from, double duration) {
    work_ += duration;
    return occupy(cpu_free_[rank], from, duration);
  }

  const LinkLevel& link(const Task& task) const {
    return task.step->channel == ChannelKind::shm ? machine_.levels.back() : machine_.levels.front();
  }

  // A message through shared memory is drained while it is being written; one over the network is there when its last
  // byte is.
  double send(const Event& event, Task& task) {
    const LinkLevel& link = this->link(task);
    const double work = link.overhead + link.cpu_seconds_per_byte * task.bytes;
    const double posted = compute(event.rank, event.time, work);
    Task& receive = tasks_[static_cast<std::size_t>(task.step->peer)][task.partner];
    const auto peer = static_cast<std::size_t>(task.step->peer);
    if (task.step->channel == ChannelKind::shm) {
      receive.complete_from = posted + link.latency;
      arrive(receive, peer, task.partner, posted - work + link.overhead + link.latency);
    } else {
      const double wire = wire_seconds(task);
      const double left = occupy(nic_out_[node(event.rank)], posted, wire);
      push(left - wire, peer, task.partner, true);
    }
    return finish(event, posted);
  }

  double wire_seconds(const Task& task) const {
    const LinkLevel& link = this->link(task);
    return link.port_seconds_per_message + link.port_seconds_per_byte * task.bytes;
  }

  // The receiving NIC takes messages in the order in which they reach it.
  double take_from_wire(const Event& event, Task& receive) {
    const double taken = occupy(nic_in_[node(event.rank)], event.time, wire_seconds(receive));
    receive.complete_from = taken + network_latency();
    arrive(receive, event.rank, event.task, receive.complete_from);
    return event.time;
  }

  void arrive(Task& receive, std::size_t rank, std::uint32_t index, double time) {
    receive.arrival = time;
    if (receive.posted) push(time, rank, index);
  }

  // A rank that shares its core must be given it before it sees the message.
  double network_latency() const {
    constexpr double turn_seconds = 20e-6;
    return machine_.levels.front().latency + (machine_.ranks_per_core - 1) * turn_seconds;
  }

  double receive(const Event& event, Task& task) {
    if (task.arrival < 0) {
      task.posted = true;
      return event.time;
    }
    if (task.arrival > event.time) {
      push(task.arrival, event.rank, event.task);
      return event.time;
    }
    const LinkLevel& link = this->link(task);
    double work = link.overhead + link.cpu_seconds_per_byte * task.bytes;
    if (task.step->kind == StepKind::recv_reduce) work += machine_.reduce_seconds_per_byte * task.bytes;
    const double taken = std::max(compute(event.rank, event.time, work), task.complete_from);
    cpu_free_[event.rank] = taken;
    return finish(event, taken);
  }

  double finish(const Event& event, double time) {
    for (const std::uint32_t next : waiting_[event.rank][event.task]) {
      Task& waiting = tasks_[event.rank][next];
      waiting.ready = std::max(waiting.ready, time);
      if (--waiting.open == 0) push(waiting.ready, event.rank, next);
    }
    return time;
  }

  std::size_t node(std::size_t rank) const {
    return static_cast<std::size_t>(plan_.hierarchy->node_of(static_cast<int>(rank)));
  }

  const SimulatedPlan& plan_;
  const Machine& machine_;
  Placement placement_;
  BlockSizes sizes_;
  std::vector<double> block_bytes_;
  std::vector<std::vector<Task>> tasks_;                          // [rank][step]
  std::vector<std::vector<std::vector<std::uint32_t>>> waiting_;  // [rank][step]: those that wait for it
  std::vector<double> cpu_free_, nic_out_, nic_in_;
  std::priority_queue<Event> events_;
  std::uint64_t sequence_ = 0;
  double work_ = 0;  // processor time of all ranks
};

}  // namespace

double predict_seconds(const SimulatedPlan& plan, const Call& call, const Machine& machine) {
  return Simulation(plan, call, machine).run();
}

}  // namespace plait::plan
