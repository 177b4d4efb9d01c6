#include "plan/joint/list_schedule.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace plait::plan::joint {

ListScheduler::ListScheduler(const StepTables& tables) : tables_(tables), simulation_(tables) {
  priority_.resize(static_cast<std::size_t>(tables.most_slots));
  program_way_.resize(tables.tasks.size() + 1);
  previous_way_.resize(tables.tasks.size() + 1);
  waiting_way_.resize(tables.tasks.size());
}

// What no order can be faster than: a scale for how much an iteration more or less counts.
double ListScheduler::least_seconds() const {
  double busy[most_channels] = {};
  double most = tables_.computation;
  for (int slot = 0; slot < simulation_.slots(); ++slot) {
    if (tables_.tasks[simulation_.task_of(slot)].computes) continue;
    const FlatPiece& piece = simulation_.piece_of(slot);
    for (std::uint32_t left = piece.channels; left != 0; left &= left - 1) {
      double& own = busy[std::countr_zero(left)];
      most = std::max(most, own += piece.seconds);
    }
  }
  return most;
}

// The longest way from the end of an operation on, where `waiting_way_` is known of what waits for it.
double ListScheduler::way_after(int task) const { return std::max(waiting_way_[task], previous_way_[task]); }

// The way of every piece, from what is known of the step behind it. The program's order is the order of dependencies.
void ListScheduler::find_ways_once(double seconds) {
  const int tasks = static_cast<int>(tables_.tasks.size());
  const auto hand_back = [&](const FlatTask& task, double way) {
    for (const Wait& wait : tables_.waits_of(task))
      if (wait.previous == 0) waiting_way_[wait.task] = std::max(waiting_way_[wait.task], way);
  };
  program_way_[tasks] = previous_way_[0];
  for (int index = tasks; index-- > 0;) {
    const FlatTask& task = tables_.tasks[index];
    const int first = simulation_.first_slot(index);
    if (task.computes) {
      priority_[first] = program_way_[index] = task.seconds + program_way_[index + 1];
      hand_back(task, program_way_[index]);
      continue;
    }
    const int end = index + 1 < tasks ? simulation_.first_slot(index + 1) : simulation_.slots();
    const double after = way_after(index);
    double longest = 0;
    for (int slot = end; slot-- > first;) {
      const FlatPiece& piece = simulation_.piece_of(slot);
      double way = after;
      for (std::uint64_t left = piece.before; left != 0; left &= left - 1)
        way = std::max(way, priority_[first + std::countr_zero(left)]);
      priority_[slot] = piece.seconds + way;
      longest = std::max(longest, priority_[slot]);
    }
    hand_back(task, longest);
    program_way_[index] = std::max(longest, program_way_[index + 1]);
  }
  // What the step before this one sees of it, for the next pass.
  std::fill(waiting_way_.begin(), waiting_way_.end(), -seconds);
  for (int index = 0; index < tasks; ++index) {
    previous_way_[index] = program_way_[index] - seconds;
    for (const Wait& wait : tables_.waits_of(tables_.tasks[index]))
      if (wait.previous == 1)
        waiting_way_[wait.task] = std::max(waiting_way_[wait.task], program_way_[index] - seconds);
  }
}

// The longest ways through this step and the next (section 4.3: the graph is unrolled across two iterations), where an
// iteration more is worth `seconds` less: so operations of this step and of the next can be compared.
void ListScheduler::find_ways(double seconds) {
  std::fill(previous_way_.begin(), previous_way_.end(), -seconds);
  std::fill(waiting_way_.begin(), waiting_way_.end(), -seconds);
  find_ways_once(seconds);
  find_ways_once(seconds);
}

void ListScheduler::latest_first() {
  for (int slot = 0; slot < simulation_.slots(); ++slot) priority_[slot] = simulation_.task_of(slot);
}

void ListScheduler::program_order(std::vector<OrderedPiece>& order) const {
  order.clear();
  for (int slot = 0; slot < simulation_.slots(); ++slot) {
    const int task = simulation_.task_of(slot);
    if (!tables_.tasks[task].computes) order.push_back({task, slot - simulation_.first_slot(task), 0});
  }
}

double ListScheduler::list_by_priority(bool one_operation, double lead, const SimulationLimits& limits,
                                       std::vector<OrderedPiece>& order) {
  result_ = simulation_.list(priority_, lead, one_operation, limits);
  simulation_.last_order(order);
  return result_.seconds;
}

double ListScheduler::list_chosen(Policy policy, const SimulationLimits& limits, std::vector<OrderedPiece>& order) {
  switch (policy) {
    case Policy::as_issued:
      result_ = simulation_.in_turn(limits);
      break;
    case Policy::fifo:
      program_order(order);
      result_ = simulation_.follow(order, limits);
      break;
    case Policy::lifo:
      latest_first();
      return list_by_priority(true, -static_cast<double>(tables_.tasks.size()), limits, order);
    case Policy::critical_path: {
      const double seconds = least_seconds();
      find_ways(seconds);
      return list_by_priority(false, seconds, limits, order);
    }
  }
  return result_.seconds;
}

double ListScheduler::list(std::span<const int> options, Policy policy, const SimulationLimits& limits,
                           std::vector<OrderedPiece>& order) {
  simulation_.choose(options);
  return list_chosen(policy, limits, order);
}

double ListScheduler::list_perturbed(std::span<const int> options, std::span<const double> factors,
                                     const SimulationLimits& limits, std::vector<OrderedPiece>& order) {
  simulation_.choose(options);
  const double seconds = least_seconds();
  find_ways(seconds);
  for (int slot = 0; slot < simulation_.slots(); ++slot) priority_[slot] *= factors[slot];
  return list_by_priority(false, seconds, limits, order);
}

double ListScheduler::follow(std::span<const int> options, std::span<const OrderedPiece> order,
                             const SimulationLimits& limits) {
  simulation_.choose(options);
  result_ = simulation_.follow(order, limits);
  return result_.seconds;
}

std::vector<TimedPiece> ListScheduler::timeline() const {
  std::vector<TimedPiece> timeline;
  const int last = simulation_.last_iteration();
  for (int iteration = std::max(0, last - 1); iteration <= last; ++iteration) {
    for (int slot = 0; slot < simulation_.slots(); ++slot) {
      const int task = simulation_.task_of(slot);
      timeline.push_back({task, slot - simulation_.first_slot(task), iteration - last,
                          simulation_.start(slot, iteration), simulation_.end(slot, iteration)});
    }
  }
  std::stable_sort(timeline.begin(), timeline.end(),
                   [](const TimedPiece& a, const TimedPiece& b) { return a.start < b.start; });
  return timeline;
}

Schedule ListScheduler::schedule(std::span<const int> options, Policy policy) {
  std::vector<OrderedPiece> order;
  double seconds = list(options, policy, exact_limits, order);
  // A policy may take turns among several orders; what is promised is what one of them takes when it is followed.
  if (policy == Policy::critical_path) seconds = follow(options, order, exact_limits);
  if (policy == Policy::as_issued) program_order(order);
  return {seconds, result_.iterations, result_.periodic, std::move(order), timeline()};
}

Schedule ListScheduler::schedule(std::span<const int> options, std::span<const OrderedPiece> order) {
  const double seconds = follow(options, order, exact_limits);
  std::vector<TimedPiece> times;
  if (seconds < std::numeric_limits<double>::infinity()) times = timeline();
  return {seconds, result_.iterations, result_.periodic, {order.begin(), order.end()}, std::move(times)};
}

}  // namespace plait::plan::joint
