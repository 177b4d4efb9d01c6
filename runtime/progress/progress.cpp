#include "runtime/progress/progress.h"

#include <sched.h>

#include <exception>
#include <utility>

#include "core/attempt.h"
#include "runtime/execution/call_choice.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/execution.h"
#include "runtime/job/job.h"
#include "runtime/progress/helper_bell.h"
#include "runtime/progress/operation_record.h"
#include "runtime/progress/persistent_space.h"
#include "runtime/team/team.h"

namespace plait::runtime {
namespace {

// Turns that moved nothing, between two looks whether a rank of another node has failed.
constexpr std::uint32_t notice_every = 256;

// Locked instructions make up a good part of a small operation's time: they are for when there are several threads.
void add(std::atomic<int>& counter, int amount) {
  if (threaded())
    counter.fetch_add(amount, std::memory_order_acq_rel);
  else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

void break_road(Communicator& communicator, Status failure) {
  communicator.operations.failure = std::move(failure);
  communicator.road = Road::broken;
}

// ---- Running ----

// Its staging, where it has one, is used by the exchange.
void ask_devices(Operation& operation) {
  Execution& execution = operation.execution;
  if (operation.on_devices == nullptr) operation.on_devices = std::make_unique<DeviceExchange>();
  DeviceExchange& exchange = *operation.on_devices;
  exchange.take(*operation.communicator->team, operation.communicator->rank, operation.request,
                operation.prepared->schedule, operation.memory, operation.laid_out ? &execution.staging : nullptr);
  execution.exchange = &exchange;
  execution.schedule = &exchange.question();
}

// Which learns of it, nullptr: nothing does. Persistent operations start in an order of their own.
SlotSize* slot_size_of(const Operation& operation) {
  Team& team = *operation.communicator->team;
  if (!team.posted_learn || operation.space != nullptr) return nullptr;
  if (operation.request.call.collective == Collective::gatherv) return nullptr;
  return team.posted_slots.of(operation.request.call.collective);
}

// By the posted calls that have run before its slots may have become longer than those that it was prepared for, as
// usual: by then ranks did not know alike which calls had. Shorter ones would save less than it takes to find their
// plan.
void lengthen_slots(Operation& operation, std::size_t learned_bytes, PairExchange::Problem& problem) {
  if (learned_bytes <= problem.slot_bytes) return;
  PairExchange::Problem longer = problem;
  longer.slot_bytes = learned_bytes;
  const Call first = PairExchange::first_call(longer);
  auto found = operation.communicator->team->schedules.hold({.call = first, .candidate = planners_candidate});
  if (!found->accelerated) return;
  operation.usual_pairs = std::exchange(operation.prepared, std::move(found));
  problem = longer;
}

void take_pairs(Operation& operation) {
  static const HostSizes none_are_hosts;  // it is posted already
  const SlotSize* size = slot_size_of(operation);
  if (operation.usual_pairs != nullptr) operation.prepared = std::move(operation.usual_pairs);
  PairExchange::Problem problem = pair_problem(*operation.communicator, operation.request, usual_slot_bytes);
  if (size != nullptr) problem.hosts = &none_are_hosts;
  if (size != nullptr) lengthen_slots(operation, size->bytes(), problem);
  if (operation.pairs == nullptr) operation.pairs = std::make_unique<PairExchange>();
  operation.pairs->take(problem);
  operation.execution.schedule = &operation.prepared->schedule;
  operation.execution.exchange = operation.pairs.get();
}

// Once it has run through, before the communicator's next one begins.
void learn(const Operation& operation) {
  if (SlotSize* size = slot_size_of(operation); size != nullptr) size->learn(operation.pairs->wishes());
}

// What its execution needs, once it is its turn.
void prepare_execution(Operation& operation) {
  Execution& execution = operation.execution;
  execution.schedule = &operation.prepared->schedule;
  execution.exchange = nullptr;
  if (by_pairs(operation.request.call.collective)) {
    take_pairs(operation);
  } else if (on_neighbors(operation.request.call.collective)) {
    execution.exchange = operation.neighbors.get();
  } else if (runs_ordered(operation)) {
    execution.exchange = operation.ordered.get();
  } else if (asks_devices(*operation.communicator->team, operation.request)) {
    ask_devices(operation);
    return;
  }
  if (execution.exchange != nullptr) {
    if (operation.memory.has_flow()) execution.exchange->follow(operation.memory.flow());
  } else if (!operation.laid_out) {
    execution.staging = lay_out(operation.request, *execution.schedule, operation.memory);
  }
}

Result<bool> move_on(Operation& operation, bool may_call_host) {
  Team& team = *operation.communicator->team;
  if (std::exchange(operation.running, true)) return progress(team, operation.execution, may_call_host);
  prepare_execution(operation);
  return start(team, operation.request, operation.execution, may_call_host);
}

// True when the operation has come to its end. What a start throws, for want of memory, is a failure like others.
bool move_to_end(Operation& operation, bool may_call_host) {
  if (operation.errand != nullptr) [[unlikely]]
    return operation.errand->turn();
  Communicator& communicator = *operation.communicator;
  Status failure;
  try {
    if (is_broken(communicator)) return operation.failed = true;
    const Result<bool> complete = move_on(operation, may_call_host);
    if (complete.ok() && *complete && by_pairs(operation.request.call.collective)) learn(operation);
    if (complete.ok()) return *complete;
    failure = complete.status();
  } catch (const std::exception& exception) {
    failure = status_of(exception);
  }
  break_road(communicator, std::move(failure));
  return operation.failed = true;
}

// The first operation that fails learns what it was that failed first, and tells the other ranks what they have not
// heard (Team::break_off).
void fail(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (communicator.error == 0) {
    Team& team = *communicator.team;
    const Status cause = team.reason_of(communicator.operations.failure);
    team.give_up(cause);
    communicator.error = caller().code_of(cause);
  }
  operation.error = communicator.error;
  if (operation.space != nullptr) operation.space->note_failure();
}

// Nothing may be thrown through the host, which called.
int give_results(Operation& operation) {
  if (operation.errand != nullptr) [[unlikely]]
    return operation.errand->end();
  try {
    return finish(operation.request, operation.execution);
  } catch (const std::exception& exception) {
    return caller().code_of(status_of(exception));
  }
}

// The host frees a persistent request that ends with an error, so that this rank cannot start it again: no other may
// wait for that.
void break_space(Operation& operation) {
  const int own = operation.error;
  break_road(*operation.communicator, {Code::internal, "a persistent collective ended with an error on a rank"});
  fail(operation);
  operation.error = own;
}

void note_time(Operation& operation) {
  if (operation.errand != nullptr) return;  // counted as the host's
  if (operation.begin_ns == 0 && operation.communicator->team->trace == nullptr) return;
  try {
    record_operation(operation);
  } catch (const std::exception&) {  // the report lacks a line
  }
}

}  // namespace

// ---- Who is busy ----

bool Progress::enter() {
  if (threaded()) return !busy_.exchange(true, std::memory_order_acquire);
  if (busy_.load(std::memory_order_relaxed)) return false;
  busy_.store(true, std::memory_order_relaxed);
  return true;
}

void Progress::take_off_worklist(const Communicator& communicator) {
  Communicator** place = &worklist_;
  while (*place != nullptr && *place != &communicator) place = &(*place)->operations.next_listed;
  if (*place != nullptr) *place = (*place)->operations.next_listed;
}

void Progress::arrive(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  OperationQueue& queue = communicator.operations;
  if (!std::exchange(queue.listed, true)) queue.next_listed = std::exchange(worklist_, &communicator);
  operation.next = nullptr;
  (queue.first == nullptr ? queue.first : queue.last->next) = &operation;
  queue.last = &operation;
}

// ---- Ends ----

// The operation may be gone afterwards.
void Progress::tell(Operation& operation) {
  add(posted_, -1);
  operation.tell();
}

void Progress::tell_awaited() {
  if (awaited_ != nullptr && awaited_->complete.load(std::memory_order_relaxed))
    tell(*std::exchange(awaited_, nullptr));
}

// Tells whoever waits. The operation may be gone afterwards.
void Progress::conclude(Operation& operation) {
  add(operation.communicator->operations.pending, -1);
  if (operation.space != nullptr) return tell(operation);
  operation.complete.store(true, std::memory_order_release);
  if (&operation != awaited_) tell(operation);
}

void Progress::end(Operation& operation) {
  if (operation.failed)
    fail(operation);
  else
    operation.error = give_results(operation);
  if (operation.space != nullptr && !operation.failed && operation.error != 0) break_space(operation);
  note_time(operation);
  conclude(operation);
}

// The operation has come to its end.
void Progress::take_out(OperationQueue& queue, Operation& operation, bool may_call_host) {
  Operation** place = &queue.first;
  Operation* before = nullptr;
  while (*place != &operation) {
    before = *place;
    place = &before->next;
  }
  *place = operation.next;
  if (queue.last == &operation) queue.last = before;
  if (operation.membership.enlisted) operation.communicator->grouping->note_end(operation);
  if (may_call_host)
    end(operation);
  else
    endings_.push(operation);
}

// ---- Turns ----

// Whether the queue's first operation, which is enlisted, runs by itself; else its group was moved on, or waits.
bool Progress::runs_by_itself(Communicator& communicator, bool may_call_host, Grouping::Turn& turn) {
  OperationQueue& queue = communicator.operations;
  if (is_broken(communicator)) return true;
  Grouping& grouping = *communicator.grouping;
  Status failure;
  try {
    turn = grouping.turn(queue, may_call_host);
    failure = grouping.failure();
  } catch (const std::exception& exception) {  // for want of memory
    turn = Grouping::Turn::failed;
    failure = status_of(exception);
  }
  if (turn == Grouping::Turn::failed) break_road(communicator, std::move(failure));
  if (turn == Grouping::Turn::ended)
    while (Operation* ended = grouping.take_ended(queue)) take_out(queue, *ended, may_call_host);
  return turn == Grouping::Turn::by_itself || turn == Grouping::Turn::failed;
}

int Progress::run_queue(Communicator& communicator, bool may_call_host) {
  OperationQueue& queue = communicator.operations;
  int moved = 0;
  while (queue.first != nullptr) {
    Operation& operation = *queue.first;
    if (operation.needs_host && !may_call_host) break;
    Grouping::Turn turn = Grouping::Turn::by_itself;
    if (operation.membership.enlisted && !runs_by_itself(communicator, may_call_host, turn)) {
      moved += turn != Grouping::Turn::waiting ? 1 : 0;
      if (turn == Grouping::Turn::ended) continue;
      if (turn == Grouping::Turn::waiting && may_call_host && ++queue.idle_turns % notice_every == 0)
        communicator.team->look_at_notice();
      break;
    }
    const bool complete = move_to_end(operation, may_call_host);
    if (complete || (operation.errand == nullptr && communicator.team->engine.moved()))
      ++moved;
    else if (operation.errand == nullptr && may_call_host && ++queue.idle_turns % notice_every == 0)
      communicator.team->look_at_notice();
    if (!complete) break;
    take_out(queue, operation, may_call_host);
  }
  return moved;
}

// The same for a thread of the program's, where nothing may be thrown either.
void Progress::guarded_run(Communicator& communicator) noexcept {
  try {
    run_queue(communicator, true);
  } catch (const std::exception& exception) {
    break_road(communicator, status_of(exception));
  }
}

// Persistent operations that all ranks have started; true where they came nearer to it.
bool Progress::take_started(PersistentSpace& space, bool may_call_host) {
  bool moved = false;
  while (space.anything_started()) {
    Operation* operation = space.next(may_call_host, moved);
    if (operation == nullptr) break;
    if (Grouping* grouping = space.communicator().grouping.get(); grouping != nullptr) grouping->enlist(*operation);
    arrive(*operation);
    moved = true;
  }
  return moved;
}

int Progress::run_turn(bool may_call_host) {
  tell_awaited();
  for (Operation* operation = arrivals_.take(); operation != nullptr;) {
    Operation* next = operation->next;
    arrive(*operation);
    operation = next;
  }
  int moved = 0;
  for (PersistentSpace* space = spaces_; space != nullptr; space = space->next_space)
    moved += take_started(*space, may_call_host) ? 1 : 0;
  for (Communicator** place = &worklist_; *place != nullptr;) {
    OperationQueue& queue = (*place)->operations;
    moved += run_queue(**place, may_call_host);
    if (queue.first != nullptr) {
      place = &queue.next_listed;
      continue;
    }
    queue.listed = false;
    *place = queue.next_listed;
  }
  if (!may_call_host) return moved;
  for (Operation* operation = endings_.take(); operation != nullptr;) {
    Operation* next = operation->next;
    end(*operation);
    operation = next;
    ++moved;
  }
  return moved;
}

// The host called, or a thread of ours: nothing may be thrown through them. What failed for want of memory is not known
// here, so that all that is under way ends with that error.
int Progress::turn(bool may_call_host) noexcept {
  try {
    return run_turn(may_call_host);
  } catch (const std::exception& exception) {
    for (Communicator* communicator = worklist_; communicator != nullptr;
         communicator = communicator->operations.next_listed)
      if (is_set_up(*communicator)) break_road(*communicator, status_of(exception));
    return 0;
  }
}

int Progress::progress(bool may_call_host) noexcept {
  if (posted_.load(std::memory_order_acquire) == 0) return 0;
  if (!enter()) return 0;
  const int moved = turn(may_call_host);
  leave();
  return moved;
}

// ---- For those who post and wait ----

void Progress::hand_over(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  add(communicator.operations.pending, 1);
  add(posted_, 1);
  if (!threaded() && enter()) {
    tell_awaited();
    if (surroundings_.waits_come_here()) awaited_ = &operation;
    arrive(operation);
    guarded_run(communicator);
    if (awaited_ != nullptr && !awaited_->complete.load(std::memory_order_relaxed)) awaited_ = nullptr;
    leave();
    return;
  }
  arrivals_.push(operation);
  progress();
  if (job().helped) helper_bell().ring();
}

void Progress::hand_over_start(Operation& operation) {
  PersistentSpace& space = *operation.space;
  add(space.communicator().operations.pending, 1);
  add(posted_, 1);
  space.announce(operation.slot);
  if (!threaded() && enter()) {
    take_started(space, true);
    guarded_run(space.communicator());
    leave();
    return;
  }
  progress();
  if (job().helped) helper_bell().ring();
}

bool Progress::complete_untold(Operation& operation) {
  constexpr int most_turns = 256;
  const std::atomic<bool>& complete = operation.complete;
  const bool untold = !threaded() && (awaited_ == &operation || !complete.load(std::memory_order_relaxed));
  if (untold) awaited_ = &operation;
  for (int turns = 0; turns < most_turns && !complete.load(std::memory_order_acquire); ++turns)
    surroundings_.turn_from_host(*this);
  if (!untold) return false;
  awaited_ = nullptr;
  if (!complete.load(std::memory_order_relaxed)) return false;
  add(posted_, -1);
  return true;
}

void Progress::leave_out(Communicator& communicator, int error) {
  while (!enter()) sched_yield();
  if (is_set_up(communicator) || waits_for_set_up(communicator)) {
    communicator.error = error;
    break_road(communicator, attempt([] { return Status(Code::unavailable, "a rank could not take part in a call"); }));
    if (communicator.team != nullptr) communicator.team->give_up(communicator.operations.failure);
  }
  leave();
}

bool Progress::told(const Operation& operation) const {
  return operation.complete.load(std::memory_order_acquire) && &operation != awaited_;
}

void Progress::wait_until(const std::atomic<bool>& done) {
  while (!done.load(std::memory_order_acquire)) surroundings_.turn_of_wait(*this);
}

void Progress::drain(Communicator& communicator) {
  if (communicator.grouping != nullptr) communicator.grouping->note_wait_for_all();
  while (communicator.operations.pending.load(std::memory_order_acquire) != 0) surroundings_.turn_of_wait(*this);
}

void Progress::retire(Communicator& communicator) {
  drain(communicator);
  while (!enter()) sched_yield();
  take_off_worklist(communicator);
  leave();
}

void Progress::add_space(PersistentSpace& space) {
  while (!enter()) sched_yield();
  space.next_space = std::exchange(spaces_, &space);
  leave();
}

void Progress::remove_space(PersistentSpace& space) {
  while (!enter()) sched_yield();
  PersistentSpace** place = &spaces_;
  while (*place != nullptr && *place != &space) place = &(*place)->next_space;
  if (*place != nullptr) *place = space.next_space;
  take_off_worklist(space.communicator());
  leave();
}

}  // namespace plait::runtime
