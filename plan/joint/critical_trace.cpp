#include "plan/joint/critical_trace.h"

#include <algorithm>
#include <cmath>

namespace plait::plan::joint {
namespace {

// Of an iteration: ends and beginnings this near are the same.
constexpr double near = 1e-9;

}  // namespace

CriticalTrace::CriticalTrace(const StepTables& tables) : tables_(tables) {
  position_.resize(static_cast<std::size_t>(tables.most_slots));
  noted_.resize(tables.tasks.size());
}

bool CriticalTrace::same(double a, double b) const { return std::abs(a - b) <= tolerance_; }

int CriticalTrace::next_slot(int task) const {
  return task + 1 < std::ssize(tables_.tasks) ? simulation_->first_slot(task + 1) : simulation_->slots();
}

OrderedPiece CriticalTrace::named(int slot) const {
  const int task = simulation_->task_of(slot);
  return {task, slot - simulation_->first_slot(task), 0};
}

void CriticalTrace::find_places() {
  for (int i = 0; i < std::ssize(order_); ++i) position_[simulation_->first_slot(order_[i].task) + order_[i].piece] = i;
}

void CriticalTrace::add_operation_end(int task, int iteration, double time) {
  if (iteration < earliest_) return;
  for (int slot = simulation_->first_slot(task); slot < next_slot(task); ++slot)
    if (same(simulation_->end(slot, iteration), time)) causes_.push_back({slot, iteration});
}

// What the program did last before it came to a task: computation, or waiting for buffers in use.
void CriticalTrace::add_program(int task, int iteration, double time) {
  for (std::size_t steps = 0; steps < tables_.tasks.size(); ++steps) {
    if (--task < 0) {
      task = static_cast<int>(tables_.tasks.size()) - 1;
      --iteration;
    }
    if (iteration < earliest_) return;
    if (!tables_.tasks[task].computes) {
      add_operation_end(task, iteration - 1, time);
      continue;
    }
    const int slot = simulation_->first_slot(task);
    if (same(simulation_->end(slot, iteration), time)) causes_.push_back({slot, iteration});
    return;
  }
}

// The pieces before it on its channels, as many of each as can run beside it.
void CriticalTrace::add_channel(const Place& place, double time) {
  const int pieces = static_cast<int>(order_.size()), own = position_[place.slot];
  std::uint32_t left = simulation_->piece_of(place.slot).channels;
  int looked_at = 0;
  for (int back = 1; back < pieces && left != 0; ++back) {
    const int index = own - back >= 0 ? own - back : own - back + pieces;
    const OrderedPiece& before = order_[index];
    const int slot = simulation_->first_slot(before.task) + before.piece;
    const std::uint32_t shared = simulation_->piece_of(slot).channels & left;
    if (shared == 0) continue;
    const int iteration = place.iteration - order_[own].ahead + before.ahead - (own - back >= 0 ? 0 : 1);
    if (iteration < earliest_ || iteration > simulation_->last_iteration()) return;
    if (same(simulation_->end(slot, iteration), time) || same(simulation_->start(slot, iteration), time))
      causes_.push_back({slot, iteration, true});
    if (++looked_at >= 2) left &= ~shared;
  }
}

void CriticalTrace::add_causes(const Place& place) {
  const int task = simulation_->task_of(place.slot), first = simulation_->first_slot(task);
  const FlatTask& flat = tables_.tasks[task];
  const double time = simulation_->start(place.slot, place.iteration);
  causes_.clear();
  for (const Wait& wait : tables_.waits_of(flat)) add_operation_end(wait.task, place.iteration - wait.previous, time);
  add_program(task, place.iteration, time);
  if (flat.computes) return;
  add_operation_end(task, place.iteration - 1, time);
  const std::uint64_t after = simulation_->piece_of(place.slot).after;
  for (int slot = first; slot < next_slot(task); ++slot)
    if ((after >> (slot - first) & 1) != 0 && same(simulation_->end(slot, place.iteration), time))
      causes_.push_back({slot, place.iteration});
  add_channel(place, time);
}

void CriticalTrace::note(const Place& from, const Place& to) {
  if (to.by_channel) waits_.push_back({named(to.slot), named(from.slot)});
  for (const Place& place : {from, to}) {
    const int task = simulation_->task_of(place.slot);
    if (tables_.tasks[task].computes || noted_[task]++ != 0) continue;
    operations_.push_back(task);
  }
}

void CriticalTrace::find(const StepSimulation& simulation, std::span<const OrderedPiece> order, double seconds,
                         std::mt19937_64& random) {
  simulation_ = &simulation;
  order_ = order;
  tolerance_ = near * seconds;
  const int last = simulation.last_iteration();
  earliest_ = std::max(0, last - (StepSimulation::rows - 5));
  waits_.clear();
  operations_.clear();
  std::fill(noted_.begin(), noted_.end(), 0);
  find_places();
  Place place{0, last};
  for (int slot = 1; slot < simulation.slots(); ++slot)
    if (simulation.end(slot, last) > simulation.end(place.slot, last)) place.slot = slot;
  for (int steps = 0; steps < 3 * simulation.slots(); ++steps) {
    add_causes(place);
    if (causes_.empty()) return;
    const Place cause = causes_[random() % causes_.size()];
    note(place, cause);
    place = cause;
  }
}

}  // namespace plait::plan::joint
