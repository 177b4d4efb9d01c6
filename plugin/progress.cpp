#include "plugin/progress.h"

#include <sched.h>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "plugin/bootstrap.h"
#include "plugin/errors.h"
#include "plugin/host_progress.h"
#include "plugin/layout.h"
#include "plugin/nonblocking.h"
#include "plugin/persistent.h"
#include "plugin/set_up_task.h"

namespace plait {
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

constinit std::atomic<int> posted{0};  // operations that are not complete
constinit std::atomic_flag busy;       // some thread runs progress()
constinit Mailbox arrivals;
constinit Mailbox endings;  // of a thread that must not call MPI: complete but for that

// With operations or a set-up. Belongs to the thread that is busy; never destroyed, as calls may come to the very end.
std::vector<Communicator*>& worklist() {
  static auto* list = new std::vector<Communicator*>;
  return *list;
}

void append(OperationQueue& queue, Operation& operation) {
  operation.next = nullptr;
  (queue.first == nullptr ? queue.first : queue.last->next) = &operation;
  queue.last = &operation;
}

void leave_to_host(OperationQueue& queue, Operation& operation) {
  operation.next = std::exchange(queue.on_host, &operation);
}

// ---- Who runs it ----

void post_on_host(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  operation.error = operation.post_on_host(communicator.handle, &operation.host_request);
  if (operation.error != MPI_SUCCESS) operation.host_request = MPI_REQUEST_NULL;
  leave_to_host(communicator.operations, operation);
}

// An operation that was kept, once its communicator is settled.
void sort(Operation& operation, Road road) {
  Communicator& communicator = *operation.communicator;
  if (road == Road::accelerated && operation.reason == nullptr) prepare_to_run(operation);
  if (operation.prepared != nullptr)
    append(communicator.operations, operation);
  else
    post_on_host(operation);
  communicator.operations.kept.fetch_sub(1, std::memory_order_release);
}

void arrive(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  OperationQueue& queue = communicator.operations;
  if (!std::exchange(queue.listed, true)) worklist().push_back(&communicator);
  if (operation.host_request != MPI_REQUEST_NULL)
    leave_to_host(queue, operation);
  else if (operation.prepared != nullptr || queue.set_up != nullptr)
    append(queue, operation);
  else
    sort(operation, communicator.road);
}

bool advance_set_up(Communicator& communicator) {
  OperationQueue& queue = communicator.operations;
  const std::optional<Road> road = queue.set_up->advance();
  if (!road) return false;
  queue.set_up.reset();
  Operation* kept = std::exchange(queue.first, nullptr);
  while (kept != nullptr) {
    Operation* next = kept->next;
    sort(*kept, *road);
    kept = next;
  }
  communicator.road = *road;
  return true;
}

// ---- Running ----

// Tells whoever waits. The operation may be gone afterwards.
void conclude(Operation& operation) {
  operation.prepared.reset();
  operation.post_on_host = nullptr;
  operation.communicator->operations.pending.fetch_sub(1, std::memory_order_release);
  posted.fetch_sub(1, std::memory_order_relaxed);
  if (operation.persistent != nullptr)
    complete_persistent(operation);
  else
    PMPI_Grequest_complete(operation.handle);
}

Status begin(Operation& operation, bool& complete) {
  Machinery& machinery = *operation.communicator->machinery;
  const BoundSchedule& schedule = operation.prepared->schedule;
  operation.running = true;
  operation.staging = lay_out(operation.request, schedule, operation.memory);
  if (stage_in(operation.request, operation.staging) != MPI_SUCCESS)
    return {Code::internal, "the host could not pack the data of a non-blocking collective"};
  const Result<bool> done =
      machinery.engine.start(schedule, operation.staging.buffers, operation.request.reducer, begin_trace(machinery));
  if (!done.ok()) return done.status();
  complete = *done;
  return {};
}

// True when the operation has come to its end. What a start throws, for want of memory, is a failure like others.
bool move_on(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  bool complete = false;
  Status status;
  try {
    if (communicator.road == Road::broken) {
      operation.error = communicator.error;
      return true;
    }
    if (!operation.running) {
      status = begin(operation, complete);
    } else {
      const Result<bool> done = communicator.machinery->engine.progress();
      status = done.status();
      complete = done.ok() && *done;
    }
  } catch (const std::exception& exception) {
    status = Status(Code::unavailable, exception.what());
  }
  if (status.ok()) return complete;
  operation.error = communicator.error = error_code(status);
  communicator.road = Road::broken;
  return true;
}

void end(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (operation.error == MPI_SUCCESS) operation.error = stage_out(operation.request, operation.staging);
  if (operation.begin_ns != 0 || communicator.machinery->trace != nullptr) record_operation(operation);
  conclude(operation);
}

int run_queue(Communicator& communicator, bool may_call_host) {
  OperationQueue& queue = communicator.operations;
  int completed = 0;
  while (queue.first != nullptr) {
    Operation& operation = *queue.first;
    if ((operation.needs_host && !may_call_host) || !move_on(operation)) break;
    queue.first = operation.next;
    ++completed;
    if (may_call_host)
      end(operation);
    else
      endings.push(operation);
  }
  return completed;
}

int look_at_host(OperationQueue& queue) {
  int completed = 0;
  for (Operation** link = &queue.on_host; *link != nullptr;) {
    Operation& operation = **link;
    int done = 1;
    if (operation.host_request != MPI_REQUEST_NULL) {
      const int error = PMPI_Test(&operation.host_request, &done, MPI_STATUS_IGNORE);
      if (error != MPI_SUCCESS) operation.error = error;
      done |= error != MPI_SUCCESS ? 1 : 0;
    }
    if (done == 0) {
      link = &operation.next;
      continue;
    }
    *link = operation.next;
    ++completed;
    conclude(operation);
  }
  return completed;
}

int advance(Communicator& communicator, bool may_call_host) {
  OperationQueue& queue = communicator.operations;
  if (queue.set_up != nullptr && (!may_call_host || !advance_set_up(communicator))) return 0;
  int completed = run_queue(communicator, may_call_host);
  if (may_call_host && queue.on_host != nullptr) completed += look_at_host(queue);
  return completed;
}

bool idle(const OperationQueue& queue) {
  return queue.first == nullptr && queue.on_host == nullptr && queue.set_up == nullptr;
}

int turn(bool may_call_host) {
  for (Operation* operation = arrivals.take(); operation != nullptr;) {
    Operation* next = operation->next;
    arrive(*operation);
    operation = next;
  }
  int completed = 0;
  std::vector<Communicator*>& list = worklist();
  for (std::size_t i = list.size(); i-- > 0;) {
    completed += advance(*list[i], may_call_host);
    if (!idle(list[i]->operations)) continue;
    list[i]->operations.listed = false;
    list[i] = list.back();
    list.pop_back();
  }
  if (!may_call_host) return completed;
  for (Operation* operation = endings.take(); operation != nullptr;) {
    Operation* next = operation->next;
    end(*operation);
    operation = next;
  }
  return completed;
}

int progress_from_host() { return progress(); }

void join_host_once() {
  static const bool joined = join_host_progress(progress_from_host);
  static_cast<void>(joined);
}

}  // namespace

int progress(bool may_call_host) {
  if (posted.load(std::memory_order_acquire) == 0) return 0;
  if (busy.test_and_set(std::memory_order_acquire)) return 0;
  const int completed = turn(may_call_host);
  busy.clear(std::memory_order_release);
  return completed;
}

void hand_over(Operation& operation) {
  join_host_once();
  operation.communicator->operations.pending.fetch_add(1, std::memory_order_relaxed);
  posted.fetch_add(1, std::memory_order_relaxed);
  arrivals.push(operation);
  progress();
}

namespace {

// Between two turns that moved nothing.
void wait_a_little() {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, 0, quiet_communicator(), &found, MPI_STATUS_IGNORE);
  sched_yield();
}

}  // namespace

void drain(Communicator& communicator) {
  while (communicator.operations.pending.load(std::memory_order_acquire) != 0)
    if (progress() == 0) wait_a_little();
}

void retire(Communicator& communicator) {
  drain(communicator);
  while (busy.test_and_set(std::memory_order_acquire)) sched_yield();
  std::erase(worklist(), &communicator);
  busy.clear(std::memory_order_release);
}

void finish_set_up(Communicator& communicator) {
  while (communicator.operations.kept.load(std::memory_order_acquire) != 0)
    if (progress() == 0) wait_a_little();
}

}  // namespace plait
