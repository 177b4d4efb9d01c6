#include "plugin/progress.h"

#include <sched.h>

#include <atomic>
#include <exception>
#include <utility>

#include "plugin/call_choice.h"
#include "plugin/call_record.h"
#include "plugin/completion.h"
#include "plugin/errors.h"
#include "plugin/execution.h"
#include "plugin/fusion.h"
#include "plugin/host_progress.h"
#include "plugin/layer.h"
#include "plugin/persistent_requests.h"
#include "plugin/persistent_space.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/progress/helper_bell.h"
#include "runtime/team/team.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// Operations that one thread hands to another: any number of threads push, one takes them all.
class Mailbox {
 public:
  void push(Operation& operation) {
    operation.next = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(operation.next, &operation, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
  }
  // In the order in which they came.
  Operation* take() {
    if (newest_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Operation* newest = newest_.exchange(nullptr, std::memory_order_acquire);
    Operation* oldest = nullptr;
    while (newest != nullptr) {
      Operation* before = std::exchange(newest->next, oldest);
      oldest = std::exchange(newest, before);
    }
    return oldest;
  }

 private:
  std::atomic<Operation*> newest_{nullptr};
};

// Turns that moved nothing, between two looks whether a rank of another node has failed.
constexpr std::uint32_t notice_every = 256;

constinit std::atomic<int> posted{0};     // operations that are not complete
constinit std::atomic<bool> busy{false};  // some thread runs progress(), or this one is within it
// It may come to its end without its request being told: during its posting, and while a wait of ours waits for it.
// When it has, it counts as posted until somebody waits for it or the next turn tells its request.
constinit Operation* awaited = nullptr;
constinit Mailbox arrivals;
constinit Mailbox endings;  // of a thread that must not call MPI: complete but for that

// Both belong to the thread that is busy. They are lists of what is there already: whoever moves operations on may not
// be in want of memory.
constinit Communicator* worklist = nullptr;   // with operations
constinit PersistentSpace* spaces = nullptr;  // all that are alive

void take_off_worklist(const Communicator& communicator) {
  Communicator** place = &worklist;
  while (*place != nullptr && *place != &communicator) place = &(*place)->operations.next_listed;
  if (*place != nullptr) *place = (*place)->operations.next_listed;
}

// Locked instructions make up a good part of a small operation's time: they are for when there are several threads.
void add(std::atomic<int>& counter, int amount) {
  if (threaded())
    counter.fetch_add(amount, std::memory_order_acq_rel);
  else
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

bool enter_progress() {
  if (threaded()) return !busy.exchange(true, std::memory_order_acquire);
  if (busy.load(std::memory_order_relaxed)) return false;
  busy.store(true, std::memory_order_relaxed);
  return true;
}

void leave_progress() { busy.store(false, std::memory_order_release); }

void arrive(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  OperationQueue& queue = communicator.operations;
  if (!std::exchange(queue.listed, true)) queue.next_listed = std::exchange(worklist, &communicator);
  operation.next = nullptr;
  (queue.first == nullptr ? queue.first : queue.last->next) = &operation;
  queue.last = &operation;
}

// ---- Running ----

// The operation may be gone afterwards.
void tell(Operation& operation) {
  add(posted, -1);
  complete_request(operation);
}

void tell_awaited() {
  if (awaited != nullptr && awaited->complete.load(std::memory_order_relaxed)) tell(*std::exchange(awaited, nullptr));
}

// Tells whoever waits. The operation may be gone afterwards.
void conclude(Operation& operation) {
  add(operation.communicator->operations.pending, -1);
  if (operation.persistence.space != nullptr) {
    add(posted, -1);
    return conclude_start(operation);
  }
  operation.complete.store(true, std::memory_order_release);
  if (&operation != awaited) tell(operation);
}

// What its execution needs, once it is its turn.
void prepare_execution(Operation& operation) {
  Execution& execution = operation.execution;
  execution.schedule = &operation.prepared->schedule;
  if (by_pairs(operation.request.call.collective)) {
    if (operation.pairs == nullptr) operation.pairs = std::make_unique<PairExchange>();
    execution.pairs = operation.pairs.get();
    operation.pairs->take(pair_problem(*operation.communicator, operation.request, usual_slot_bytes));
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
  Communicator& communicator = *operation.communicator;
  Status failure;
  try {
    if (communicator.road == Road::broken) return operation.failed = true;
    const Result<bool> complete = move_on(operation, may_call_host);
    if (complete.ok()) return *complete;
    failure = complete.status();
  } catch (const std::exception& exception) {
    failure = status_of(exception);
  }
  communicator.operations.failure = std::move(failure);
  communicator.road = Road::broken;
  return operation.failed = true;
}

// The first operation that fails learns what it was that failed first, and tells the other ranks what they have not
// heard (Team::break_off).
void fail(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (communicator.error == MPI_SUCCESS) {
    Team& team = *communicator.team;
    const Status cause = team.reason_of(communicator.operations.failure);
    team.give_up(cause);
    communicator.error = error_code(cause);
  }
  operation.error = communicator.error;
  if (operation.persistence.space != nullptr) operation.persistence.space->note_failure();
}

// Nothing may be thrown through the host, which called.
int give_results(Operation& operation) {
  try {
    return finish(operation.request, operation.execution);
  } catch (const std::exception& exception) {
    return error_code(status_of(exception));
  }
}

// The host frees a persistent request that ends with an error, so that this rank cannot start it again: no other may
// wait for that.
void break_space(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  const int own = operation.error;
  communicator.operations.failure = {Code::internal, "a persistent collective ended with an error on a rank"};
  communicator.road = Road::broken;
  fail(operation);
  operation.error = own;
}

void note_time(Operation& operation) {
  if (operation.begin_ns == 0 && operation.communicator->team->trace == nullptr) return;
  try {
    record_operation(operation);
  } catch (const std::exception&) {  // the report lacks a line
  }
}

void end(Operation& operation) {
  if (operation.failed)
    fail(operation);
  else
    operation.error = give_results(operation);
  if (operation.persistence.space != nullptr && !operation.failed && operation.error != MPI_SUCCESS)
    break_space(operation);
  note_time(operation);
  conclude(operation);
}

// The first operation of the queue has come to its end.
void take_out_first(OperationQueue& queue, bool may_call_host) {
  Operation& operation = *queue.first;
  queue.first = operation.next;
  operation.membership.leave();
  if (operation.membership.enlisted) operation.communicator->fusion->note_end(operation);
  if (may_call_host)
    end(operation);
  else
    endings.push(operation);
}

// Whether the queue's first operation runs by itself; else its group was moved on, or waits.
bool runs_by_itself(Communicator& communicator, bool may_call_host, Fusion::Turn& turn) {
  OperationQueue& queue = communicator.operations;
  if (!queue.first->membership.enlisted || communicator.road == Road::broken) return true;
  Status failure;
  try {
    turn = communicator.fusion->turn(queue, may_call_host);
    failure = communicator.fusion->failure();
  } catch (const std::exception& exception) {  // for want of memory
    turn = Fusion::Turn::failed;
    failure = status_of(exception);
  }
  if (turn == Fusion::Turn::failed) {
    queue.failure = std::move(failure);
    communicator.road = Road::broken;
  } else if (turn == Fusion::Turn::ended) {
    for (std::size_t left = communicator.fusion->ended(); left > 0; --left) take_out_first(queue, may_call_host);
  } else if (turn == Fusion::Turn::by_itself) {
    queue.first->membership.enter();
  }
  return turn == Fusion::Turn::by_itself || turn == Fusion::Turn::failed;
}

int run_queue(Communicator& communicator, bool may_call_host) {
  OperationQueue& queue = communicator.operations;
  int moved = 0;
  while (queue.first != nullptr) {
    Operation& operation = *queue.first;
    if (operation.needs_host && !may_call_host) break;
    Fusion::Turn turn = Fusion::Turn::by_itself;
    if (!runs_by_itself(communicator, may_call_host, turn)) {
      moved += turn != Fusion::Turn::waiting ? 1 : 0;
      if (turn == Fusion::Turn::ended) continue;
      if (turn == Fusion::Turn::waiting && may_call_host && ++queue.idle_turns % notice_every == 0)
        communicator.team->look_at_notice();
      break;
    }
    const bool complete = move_to_end(operation, may_call_host);
    if (complete || communicator.team->engine.moved())
      ++moved;
    else if (may_call_host && ++queue.idle_turns % notice_every == 0)
      communicator.team->look_at_notice();
    if (!complete) break;
    take_out_first(queue, may_call_host);
  }
  return moved;
}

// The same for a thread of the program's, where nothing may be thrown either.
void guarded_run(Communicator& communicator) noexcept {
  try {
    run_queue(communicator, true);
  } catch (const std::exception& exception) {
    communicator.operations.failure = status_of(exception);
    communicator.road = Road::broken;
  }
}

// Persistent operations that all ranks have started; true where they came nearer to it.
bool take_started(PersistentSpace& space, bool may_call_host) {
  bool moved = false;
  while (space.anything_started()) {
    Operation* operation = space.next(may_call_host, moved);
    if (operation == nullptr) break;
    arrive(*operation);
    moved = true;
  }
  return moved;
}

int run_turn(bool may_call_host) {
  tell_awaited();
  for (Operation* operation = arrivals.take(); operation != nullptr;) {
    Operation* next = operation->next;
    arrive(*operation);
    operation = next;
  }
  int moved = 0;
  for (PersistentSpace* space = spaces; space != nullptr; space = space->next_space)
    moved += take_started(*space, may_call_host) ? 1 : 0;
  for (Communicator** place = &worklist; *place != nullptr;) {
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
  for (Operation* operation = endings.take(); operation != nullptr;) {
    Operation* next = operation->next;
    end(*operation);
    operation = next;
    ++moved;
  }
  return moved;
}

// The host called, or a thread of ours: nothing may be thrown through them. What failed for want of memory is not known
// here, so that all that is under way ends with that error.
int turn(bool may_call_host) noexcept {
  try {
    return run_turn(may_call_host);
  } catch (const std::exception& exception) {
    for (Communicator* communicator = worklist; communicator != nullptr;
         communicator = communicator->operations.next_listed) {
      if (communicator->road != Road::accelerated) continue;
      communicator->operations.failure = status_of(exception);
      communicator->road = Road::broken;
    }
    return 0;
  }
}

// The program is within MPI.
int progress_from_host() {
  OverlapCounts& overlap = OverlapCounts::instance();
  if (overlap.started() && !on_helper_thread() && anything_posted()) {
    const std::uint64_t now_ns = monotonic_ns();
    overlap.turns.note(now_ns);
    overlap.time.note_turn(now_ns);
  }
  return progress();
}

}  // namespace

bool host_drives_progress() {
  static const bool joined = join_host_progress(progress_from_host);
  return joined;
}

int progress(bool may_call_host) {
  if (posted.load(std::memory_order_acquire) == 0) return 0;
  if (!enter_progress()) return 0;
  const int moved = turn(may_call_host);
  leave_progress();
  return moved;
}

void hand_over(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  add(communicator.operations.pending, 1);
  add(posted, 1);
  if (!threaded() && enter_progress()) {
    tell_awaited();
    if (waits_come_here()) awaited = &operation;
    arrive(operation);
    guarded_run(communicator);
    if (awaited != nullptr && !awaited->complete.load(std::memory_order_relaxed)) awaited = nullptr;
    leave_progress();
    return;
  }
  arrivals.push(operation);
  progress();
  if (job().helped) helper_bell().ring();
}

void hand_over_start(Operation& operation) {
  PersistentSpace& space = *operation.persistence.space;
  add(space.communicator().operations.pending, 1);
  add(posted, 1);
  space.announce(operation.persistence.slot);
  if (!threaded() && enter_progress()) {
    take_started(space, true);
    guarded_run(space.communicator());
    leave_progress();
    return;
  }
  progress();
  if (job().helped) helper_bell().ring();
}

bool complete_untold(Operation& operation) {
  constexpr int most_turns = 256;
  const std::atomic<bool>& complete = operation.complete;
  const bool untold = !threaded() && (awaited == &operation || !complete.load(std::memory_order_relaxed));
  if (untold) awaited = &operation;
  for (int turns = 0; turns < most_turns && !complete.load(std::memory_order_acquire); ++turns) progress_from_host();
  if (!untold) return false;
  awaited = nullptr;
  if (!complete.load(std::memory_order_relaxed)) return false;
  add(posted, -1);
  return true;
}

void leave_out(Communicator& communicator, int error) {
  while (!enter_progress()) sched_yield();
  if (communicator.road == Road::accelerated || communicator.road == Road::waiting) {
    communicator.error = error;
    communicator.road = Road::broken;
    try {
      communicator.operations.failure = {Code::unavailable, "a rank could not take part in a call"};
    } catch (const std::exception& exception) {
      communicator.operations.failure = status_of(exception);
    }
    if (communicator.team != nullptr) communicator.team->give_up(communicator.operations.failure);
  }
  leave_progress();
}

bool anything_posted() { return posted.load(std::memory_order_seq_cst) != 0; }

// MPICH makes no progress in a probe among one rank.
void progress_of_both() {
  if (progress_from_host() != 0) return;
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  sched_yield();
}

bool told(const Operation& operation) {
  return operation.complete.load(std::memory_order_acquire) && &operation != awaited;
}

void drain(Communicator& communicator) {
  while (communicator.operations.pending.load(std::memory_order_acquire) != 0) progress_of_both();
}

void retire(Communicator& communicator) {
  drain(communicator);
  while (!enter_progress()) sched_yield();
  take_off_worklist(communicator);
  leave_progress();
}

void add_space(PersistentSpace& space) {
  while (!enter_progress()) sched_yield();
  space.next_space = std::exchange(spaces, &space);
  leave_progress();
}

void remove_space(PersistentSpace& space) {
  while (!enter_progress()) sched_yield();
  PersistentSpace** place = &spaces;
  while (*place != nullptr && *place != &space) place = &(*place)->next_space;
  if (*place != nullptr) *place = space.next_space;
  take_off_worklist(space.communicator());
  leave_progress();
}

}  // namespace plait::plugin
