#include "plan/joint/step_simulation.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace plait::plan::joint {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double same_time = 1e-12;  // of a step's times in all
constexpr double same_pace = 1e-9;
constexpr int most_history = 4;

constexpr std::uint64_t bit(int index) { return std::uint64_t{1} << index; }

}  // namespace

StepSimulation::StepSimulation(const StepTables& tables) : tables_(tables) {
  const std::size_t tasks = tables.tasks.size(), slots = static_cast<std::size_t>(tables.most_slots);
  first_slot_.resize(tasks);
  slot_task_.resize(slots);
  slot_piece_.resize(slots);
  for (std::vector<int>* counters : {&issued_, &ended_, &left_}) counters->resize(tasks);
  begun_.resize(tasks);
  done_.resize(tasks);
  open_.resize(tasks);
  used_.resize(tables.gain.size());
  lines_.resize(tables.gain.size());
  for (Line& line : lines_) {
    line.slots.reserve(slots);
    line.ahead.reserve(slots);
  }
  ready_.resize(tables.places.size());
  for (std::vector<Ready>& heap : ready_) heap.reserve(slots);
  running_.reserve(slots);
  starts_.resize(rows * slots);
  ends_.resize(rows * slots);
  seen_.resize(slots);
}

void StepSimulation::choose(std::span<const int> options) {
  double scale = tables_.computation;
  slots_ = pieces_ = 0;
  for (int task = 0; task < std::ssize(tables_.tasks); ++task) {
    first_slot_[task] = slots_;
    if (tables_.tasks[task].computes) {
      slot_task_[slots_++] = task;
      continue;
    }
    const FlatOption& option = tables_.option(task, options[task]);
    for (int piece = 0; piece < option.pieces; ++piece) {
      slot_task_[slots_] = task;
      slot_piece_[slots_++] = tables_.pieces[option.first_piece + piece];
      scale += tables_.pieces[option.first_piece + piece].seconds;
    }
    pieces_ += option.pieces;
  }
  tiny_ = same_time * scale;
}

void StepSimulation::reset() {
  std::fill(issued_.begin(), issued_.end(), 0);
  std::fill(ended_.begin(), ended_.end(), 0);
  std::fill(used_.begin(), used_.end(), 0);
  running_.clear();
  for (std::vector<Ready>& heap : ready_) heap.clear();
  log_.clear();
  now_ = 0;
  position_ = iteration_ = 0;
  turn_ = -1;
  computing_ = stopped_ = false;
  rates_stale_ = true;
  full_ = 0;
  tasks_left_[0] = static_cast<int>(tables_.tasks.size());
  last_pace_ = 0;
  steady_ = 0;
  result_ = {.seconds = never};
  last_iteration_ = -1;
}

SimulationResult StepSimulation::follow(std::span<const OrderedPiece> order, const SimulationLimits& limits) {
  line_up(order);
  history_ = 1;
  for (const OrderedPiece& ordered : order) history_ = std::max(history_, 1 + ordered.ahead);
  if (history_ > most_history) return {.seconds = never};  // the program never comes so far ahead
  return simulate<Rule::order>(limits);
}

SimulationResult StepSimulation::list(std::span<const double> priority, double lead, bool one_operation,
                                      const SimulationLimits& limits) {
  priority_ = priority;
  lead_ = lead;
  one_operation_ = one_operation;
  history_ = limits.quick ? 1 : most_history;
  log_.reserve(static_cast<std::size_t>((limits.most_iterations + 3) * pieces_));
  return simulate<Rule::priority>(limits);
}

SimulationResult StepSimulation::in_turn(const SimulationLimits& limits) {
  history_ = 1;
  return simulate<Rule::turn>(limits);
}

template <StepSimulation::Rule rule>
SimulationResult StepSimulation::simulate(const SimulationLimits& limits) {
  limits_ = limits;
  reset();
  tables_.contended ? run<true, rule>() : run<false, rule>();
  return result_;
}

template <bool contended, StepSimulation::Rule rule>
void StepSimulation::run() {
  while (!stopped_) {
    pass_program<rule>();
    dispatch<contended, rule>();
    if (!computing_ && running_.empty()) return;  // everything waits
    if constexpr (contended) set_rates();
    advance<contended>();
    complete_due<contended, rule>();
  }
}

// ---- the program

bool StepSimulation::waits_met(const FlatTask& task, int iteration) const {
  for (const Wait& wait : tables_.waits_of(task))
    if (ended_[wait.task] < iteration + 1 - wait.previous) return false;
  return true;
}

// As far as it comes now.
template <StepSimulation::Rule rule>
void StepSimulation::pass_program() {
  while (!computing_) {
    const FlatTask& task = tables_.tasks[position_];
    if (task.computes) {
      if (!waits_met(task, iteration_)) return;
      computing_ = true;
      computation_left_ = task.seconds;
      if (!tables_.contended) computation_left_ += now_;
      starts_[row(iteration_) + first_slot_[position_]] = now_;
      return;
    }
    if (issued_[position_] > ended_[position_]) return;
    submit<rule>(position_);
    if (++position_ == std::ssize(tables_.tasks)) {
      position_ = 0;
      tasks_left_[++iteration_ & (rows - 1)] = static_cast<int>(tables_.tasks.size());
    }
  }
}

template <StepSimulation::Rule rule>
void StepSimulation::submit(int task) {
  const int next = task + 1 < std::ssize(tables_.tasks) ? first_slot_[task + 1] : slots_;
  left_[task] = next - first_slot_[task];
  begun_[task] = done_[task] = 0;
  open_[task] = 0;
  if (turn_ < 0) turn_ = task;
  if (waits_met(tables_.tasks[task], issued_[task]++)) open<rule>(task);
}

// Its pieces may begin.
template <StepSimulation::Rule rule>
void StepSimulation::open(int task) {
  open_[task] = 1;
  if constexpr (rule == Rule::priority) {
    for (int slot = first_slot_[task], piece = 0; piece < left_[task]; ++piece)
      if (piece_of(slot + piece).after == 0) push(slot + piece, issued_[task] - 1);
  }
}

void StepSimulation::task_ended(int task, int iteration) {
  ++ended_[task];
  if (--tasks_left_[iteration & (rows - 1)] == 0) settle(iteration);
}

// ---- which piece begins

template <bool contended, StepSimulation::Rule rule>
void StepSimulation::dispatch() {
  if constexpr (rule == Rule::order) dispatch_in_order<contended>();
  if constexpr (rule == Rule::priority) dispatch_by_priority<contended>();
  if constexpr (rule == Rule::turn) dispatch_in_turn<contended>();
}

void StepSimulation::line_up(std::span<const OrderedPiece> order) {
  for (Line& line : lines_) {
    line.slots.clear();
    line.ahead.clear();
    line.next = line.round = 0;
  }
  for (const OrderedPiece& ordered : order) {
    const int slot = first_slot_[ordered.task] + ordered.piece;
    for (std::uint32_t left = piece_of(slot).channels; left != 0; left &= left - 1) {
      Line& line = lines_[std::countr_zero(left)];
      line.slots.push_back(slot);
      line.ahead.push_back(ordered.ahead);
      line.round = std::min(line.round, -ordered.ahead);
    }
  }
  for (Line& line : lines_) skip_unborn(line);
}

// The first rounds are for the pieces alone that are ahead: those of others would be of iterations before the first.
void StepSimulation::skip_unborn(Line& line) {
  while (line.round < 0 && line.round + line.ahead[line.next] < 0) {
    if (++line.next == std::ssize(line.slots)) {
      line.next = 0;
      ++line.round;
    }
  }
}

bool StepSimulation::may_begin(int slot) const {
  const int task = slot_task_[slot], piece = slot - first_slot_[task];
  return issued_[task] > ended_[task] && open_[task] != 0 && (begun_[task] & bit(piece)) == 0 &&
         (piece_of(slot).after & ~done_[task]) == 0;
}

bool StepSimulation::heads_all_lines(int slot) const {
  for (std::uint32_t left = piece_of(slot).channels; left != 0; left &= left - 1) {
    const Line& line = lines_[std::countr_zero(left)];
    if (line.slots[line.next] != slot) return false;
  }
  return true;
}

template <bool contended>
void StepSimulation::dispatch_in_order() {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t channel = 0; channel < lines_.size(); ++channel) {
      const Line& line = lines_[channel];
      if (line.slots.empty() || (full_ >> channel & 1) != 0) continue;
      const int slot = line.slots[line.next];
      if (!may_begin(slot) || !is_free(piece_of(slot)) || !heads_all_lines(slot)) continue;
      for (std::uint32_t left = piece_of(slot).channels; left != 0; left &= left - 1) {
        Line& own = lines_[std::countr_zero(left)];
        if (++own.next == std::ssize(own.slots)) {
          own.next = 0;
          ++own.round;
        }
        skip_unborn(own);
      }
      begin<contended>(slot);
      again = true;
    }
  }
}

void StepSimulation::push(int slot, int iteration) {
  std::vector<Ready>& heap = ready_[piece_of(slot).place];
  heap.push_back({priority_[slot] - lead_ * iteration, slot});
  std::push_heap(heap.begin(), heap.end());
}

template <bool contended>
void StepSimulation::dispatch_by_priority() {
  while (true) {
    int best = -1;
    for (int place = 0; place < std::ssize(ready_); ++place) {
      if (ready_[place].empty() || (tables_.places[place] & full_) != 0) continue;
      const Ready& top = ready_[place].front();
      if (one_operation_ && !running_.empty() && slot_task_[running_.front().slot] != slot_task_[top.slot]) continue;
      if (best < 0 || ready_[best].front() < top) best = place;
    }
    if (best < 0) return;
    const int slot = ready_[best].front().slot;
    std::pop_heap(ready_[best].begin(), ready_[best].end());
    ready_[best].pop_back();
    log_.push_back({slot, issued_[slot_task_[slot]] - 1});
    begin<contended>(slot);
  }
}

template <bool contended>
void StepSimulation::dispatch_in_turn() {
  if (turn_ < 0) return;
  for (int slot = first_slot_[turn_]; slot < slots_ && slot_task_[slot] == turn_; ++slot)
    if (may_begin(slot) && is_free(piece_of(slot))) begin<contended>(slot);
}

void StepSimulation::occupy(std::uint32_t channels, int change) {
  for (std::uint32_t left = channels; left != 0; left &= left - 1) {
    const int channel = std::countr_zero(left);
    used_[channel] += change;
    const std::uint32_t own = left & -left;
    full_ = used_[channel] == std::ssize(tables_.gain[channel]) ? full_ | own : full_ & ~own;
  }
}

template <bool contended>
void StepSimulation::begin(int slot) {
  const FlatPiece& piece = piece_of(slot);
  const int task = slot_task_[slot];
  begun_[task] |= bit(slot - first_slot_[task]);
  if constexpr (contended) {
    rates_stale_ = true;
    occupy(piece.channels, 1);
  } else {
    full_ |= piece.channels;
  }
  starts_[row(issued_[task] - 1) + slot] = now_;
  running_.push_back({.left = contended ? piece.seconds : now_ + piece.seconds, .slot = slot});
}

// ---- time

// What runs beside what decides how fast. One computation behind another changes nothing.
void StepSimulation::set_rates() {
  if (!rates_stale_ && computing_ == rated_computing_) return;
  rates_stale_ = false;
  rated_computing_ = computing_;
  double load = 0;
  for (Running& running : running_) {
    const FlatPiece& piece = piece_of(running.slot);
    load += piece.load;
    double rate = 1;
    for (std::uint32_t left = piece.channels & tables_.shared; left != 0; left &= left - 1) {
      const int channel = std::countr_zero(left), together = used_[channel];
      rate = std::min(rate, tables_.gain[channel][together - 1] / together);
    }
    if (computing_) rate *= piece.rate;
    running.rate = rate;
    running.slowness = 1 / rate;
  }
  computation_rate_ = std::max(tables_.least_computing_rate, 1 - load);
}

// To the next end of something. Ends that are the same but for rounding are one.
template <bool contended>
void StepSimulation::advance() {
  if constexpr (contended) {
    double pass = computing_ ? computation_left_ / computation_rate_ : never;
    for (const Running& running : running_) pass = std::min(pass, running.left * running.slowness);
    now_ += pass;
    computation_left_ -= pass * computation_rate_;
    for (Running& running : running_) running.left -= pass * running.rate;
  } else {
    double next = computing_ ? computation_left_ : never;
    for (const Running& running : running_) next = std::min(next, running.left);
    now_ = next;
    const double same = next + tiny_;
    if (computing_ && computation_left_ <= same) now_ = std::max(now_, computation_left_);
    for (const Running& running : running_)
      if (running.left <= same) now_ = std::max(now_, running.left);
  }
}

template <bool contended, StepSimulation::Rule rule>
void StepSimulation::complete_due() {
  const double due = contended ? tiny_ : now_;
  for (std::size_t i = 0; i < running_.size();) {
    if (running_[i].left > due) {
      ++i;
      continue;
    }
    const int slot = running_[i].slot;
    running_[i] = running_.back();
    running_.pop_back();
    if constexpr (contended) {
      rates_stale_ = true;
      occupy(piece_of(slot).channels, -1);
    } else {
      full_ &= ~piece_of(slot).channels;
    }
    complete<rule>(slot);
  }
  if (!computing_ || computation_left_ > due) return;
  computing_ = false;
  ends_[row(iteration_) + first_slot_[position_]] = now_;
  task_ended(position_, iteration_);
  if (++position_ == std::ssize(tables_.tasks)) {
    position_ = 0;
    tasks_left_[++iteration_ & (rows - 1)] = static_cast<int>(tables_.tasks.size());
  }
}

template <StepSimulation::Rule rule>
void StepSimulation::complete(int slot) {
  const int task = slot_task_[slot], first = first_slot_[task], iteration = issued_[task] - 1;
  ends_[row(iteration) + slot] = now_;
  done_[task] |= bit(slot - first);
  if constexpr (rule == Rule::priority) {
    for (std::uint64_t left = piece_of(slot).before; left != 0; left &= left - 1) {
      const int next = first + std::countr_zero(left);
      if ((piece_of(next).after & ~done_[task]) == 0) push(next, iteration);
    }
  }
  if (--left_[task] > 0) return;
  if constexpr (rule == Rule::turn) {
    do {
      turn_ = (turn_ + 1) % static_cast<int>(tables_.tasks.size());
    } while (tables_.tasks[turn_].computes);
  }
  task_ended(task, iteration);
  for (const int waiter : tables_.waiters_of(tables_.tasks[task])) {
    const bool waits = issued_[waiter] > ended_[waiter] && open_[waiter] == 0;
    if (waits && waits_met(tables_.tasks[waiter], issued_[waiter] - 1)) open<rule>(waiter);
  }
}

// By how much the slowest part came on from one iteration to one so many later, for each of them; `slowest` is then how
// much the fastest part did.
double StepSimulation::fastest_pace(int iteration, int over, double* least) const {
  const double* ends = ends_.data() + row(iteration);
  const double* before = ends_.data() + row(iteration - over);
  double most = 0, fewest = never;
  for (int slot = 0; slot < slots_; ++slot) {
    const double grown = ends[slot] - before[slot];
    most = std::max(most, grown);
    fewest = std::min(fewest, grown);
  }
  *least = fewest / over;
  return most / over;
}

// The slowest and the fastest part's pace, over as many iterations as one can depend on.
StepSimulation::Pace StepSimulation::pace(int iteration, int over) const {
  Pace all{0, never};
  for (int back = 0; back < history_; ++back) {
    double least = 0;
    all.most = std::max(all.most, fastest_pace(iteration - back, over, &least));
    all.least = std::min(all.least, least);
  }
  return all;
}

// An iteration has ended.
void StepSimulation::settle(int iteration) {
  last_iteration_ = iteration;
  result_.iterations = iteration + 1;
  if (iteration < history_) return;
  const auto stop = [&](double seconds, bool periodic) {
    result_.seconds = seconds;
    result_.periodic = periodic;
    stopped_ = true;
  };
  const Pace one = pace(iteration, 1);
  if (one.most - one.least <= same_pace * one.most) return stop(one.most, true);
  if (iteration >= history_ + 1) {
    const Pace two = pace(iteration, 2);
    if (two.most - two.least <= same_pace * two.most) return stop(two.most, true);
  }
  steady_ = std::abs(one.most - last_pace_) <= same_pace * one.most ? steady_ + 1 : 0;
  last_pace_ = one.most;
  if (limits_.quick && steady_ >= 2) return stop(one.most, false);
  if (iteration + 1 < limits_.most_iterations) return;
  double best = one.most;
  for (int over = 2; over + history_ <= std::min(iteration + 1, rows - 2); ++over)
    best = std::min(best, pace(iteration, over).most);
  stop(best, false);
}

// ---- the order that came out

void StepSimulation::last_order(std::vector<OrderedPiece>& order) {
  const std::size_t count = static_cast<std::size_t>(pieces_);
  order.clear();
  std::fill(seen_.begin(), seen_.end(), 0);
  int first = std::numeric_limits<int>::max();
  for (std::size_t i = log_.size() >= count ? log_.size() - count : 0; i < log_.size(); ++i) {
    const auto [slot, iteration] = log_[i];
    if (seen_[slot]++ != 0) break;
    first = std::min(first, iteration);
    order.push_back({slot_task_[slot], slot - first_slot_[slot_task_[slot]], iteration});
  }
  if (order.size() == count) {
    for (OrderedPiece& ordered : order) ordered.ahead -= first;
    return;
  }
  // The periods differ: as the pieces of one iteration began. No piece then waits for one that began later, so that
  // this order can be followed.
  order.clear();
  for (const auto [slot, iteration] : log_)
    if (iteration == last_iteration_) order.push_back({slot_task_[slot], slot - first_slot_[slot_task_[slot]], 0});
}

}  // namespace plait::plan::joint
