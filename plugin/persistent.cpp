#include "plugin/persistent.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/immortal.h"
#include "core/log.h"
#include "plugin/errors.h"
#include "plugin/host.h"
#include "plugin/job.h"
#include "plugin/layout.h"
#include "plugin/nonblocking.h"
#include "plugin/persistent_receive.h"
#include "plugin/persistent_space.h"
#include "plugin/progress.h"
#include "plugin/reasons.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

using State = Persistence::State;

// All that the program holds, by handle. The lock is never held across a call into MPI.
struct Registry {
  std::mutex guard;
  std::unordered_map<MPI_Request, Operation*> by_handle;
  // Whose last request came to its end within progress(), which is no place to take it down.
  std::vector<std::shared_ptr<PersistentSpace>> abandoned;

  std::unique_lock<std::mutex> lock() {
    return threaded() ? std::unique_lock(guard) : std::unique_lock(guard, std::defer_lock);
  }
};

Registry& registry() {
  static Immortal<Registry> made;  // never destroyed: requests may be freed until the process ends
  return *made;
}

constinit std::atomic<int> alive{0};

Operation* find(MPI_Request handle) {
  if (alive.load(std::memory_order_acquire) == 0) return nullptr;
  const auto lock = registry().lock();
  const auto found = registry().by_handle.find(handle);
  return found != registry().by_handle.end() ? found->second : nullptr;
}

void enlist(Operation& operation) {
  const auto lock = registry().lock();
  registry().by_handle.emplace(operation.persistence.handle, &operation);
  // One place for each that may end within progress(), where nothing may be in want of memory.
  registry().abandoned.reserve(registry().abandoned.size() + registry().by_handle.size());
  alive.fetch_add(1, std::memory_order_release);
}

// The host has started it under another handle. Needs no memory.
void rename(Operation& operation, MPI_Request handle) {
  const auto lock = registry().lock();
  auto entry = registry().by_handle.extract(operation.persistence.handle);
  operation.persistence.handle = handle;
  if (entry.empty()) return;
  entry.key() = handle;
  registry().by_handle.insert(std::move(entry));
}

void strike_out(MPI_Request handle) {
  const auto lock = registry().lock();
  if (registry().by_handle.erase(handle) != 0) alive.fetch_sub(1, std::memory_order_release);
}

// The list keeps its memory.
std::shared_ptr<PersistentSpace> take_abandoned() {
  const auto lock = registry().lock();
  if (registry().abandoned.empty()) return nullptr;
  std::shared_ptr<PersistentSpace> last = std::move(registry().abandoned.back());
  registry().abandoned.pop_back();
  return last;
}

void take_down_abandoned() {
  while (take_abandoned() != nullptr) {
  }
}

// Whether the door has requests of its own for them.
bool of_door() { return host().make_persistent_request != nullptr; }

// Returns what the operation ran on.
std::shared_ptr<PersistentSpace> forget(Operation& operation) {
  std::shared_ptr<PersistentSpace> space = std::move(operation.persistence.space);
  space->give_slot_back(operation.persistence.slot);
  if (operation.persistence.tag != 0) give_tag_back(std::exchange(operation.persistence.tag, 0));
  give_back(&operation);
  return space;
}

// The program has freed the request, perhaps before the end.
void let_go(Operation& operation) {
  State state = State::active;
  if (!operation.persistence.state.compare_exchange_strong(state, State::freed)) forget(operation);
  take_down_abandoned();
}

// Between nodes, as the report counts them: below that the host, which needs no agreement on the order, is faster. Two
// nodes of one rank, emulated, no limit on the rate: 8 B 27.7 us here and 22.9 there, 32 KiB 62 and 60
// (perf/form_calls.c).
constexpr std::uint64_t least_bytes_between_nodes = 32 * 1024;

// The same on all ranks.
bool too_short(const Operation& operation) {
  return job().config.host_when_faster && operation.persistence.space->between_nodes() &&
         operation.prepared->payload < least_bytes_between_nodes;
}

// False, with a reason, where the host must take the call.
bool prepare(Operation& operation) {
  try {
    operation.reason = why_host(operation);
    if (operation.reason != nullptr) return false;
    prepare_to_run(operation);
    if (operation.prepared == nullptr) return false;
    if (too_short(operation)) {
      operation.reason = reasons::too_short_to_order;
      return false;
    }
    if (!by_pairs(operation.request.call.collective))
      operation.staging = lay_out(operation.request, operation.prepared->schedule, operation.memory);
    if (operation.types.hold(operation.request) == MPI_SUCCESS) return true;
    operation.reason = "a datatype could not be kept";
  } catch (const std::exception&) {
    operation.reason = reasons::no_persistent_memory;
  }
  return false;
}

// All ranks make it or none does: then it says why.
const char* make_space(Communicator& communicator) {
  std::shared_ptr<PersistentSpace> made;
  bool driven = false;
  try {
    driven = host_drives_progress();
    take_down_abandoned();
    made = std::make_shared<PersistentSpace>(communicator);
  } catch (const std::exception&) {
  }
  const int mine = made != nullptr ? 1 : 0;
  int all = 0;
  if (host().allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, communicator.handle) != MPI_SUCCESS || all == 0)
    return reasons::no_persistent_memory;
  if (!driven) return reasons::no_progress_hook;
  made->open();
  communicator.persistent = std::move(made);
  return nullptr;
}

// What the program will hold, and by which it will be found. Returns an MPI error code.
int make_handle(Operation& operation) {
  try {
    const int error = of_door() ? host().make_persistent_request(operation) : make_receive(operation.persistence);
    if (error != MPI_SUCCESS) return error;
    enlist(operation);
    return MPI_SUCCESS;
  } catch (const std::exception& exception) {
    return error_code(status_of(exception));
  }
}

MPI_Comm raising(const Communicator& communicator) {
  return communicator.handle != MPI_COMM_NULL ? communicator.handle : MPI_COMM_WORLD;
}

// Tells the host that the program's request is active now.
int activate(Operation& operation, MPI_Request* request) {
  if (of_door()) return MPI_SUCCESS;  // it knows
  if (const int error = start_receive(request); error != MPI_SUCCESS) return error;
  if (*request != operation.persistence.handle) rename(operation, *request);
  return MPI_SUCCESS;
}

int start_one(Operation& operation, MPI_Request* request) {
  Persistence& persistence = operation.persistence;
  if (persistence.state.load(std::memory_order_acquire) != State::inactive)
    return of_door() ? MPI_ERR_REQUEST : host().start(request);
  Communicator& communicator = *operation.communicator;
  if (communicator.road == Road::broken)
    return raise_error(raising(communicator), communicator.error != MPI_SUCCESS ? communicator.error : MPI_ERR_OTHER);
  if (const int error = activate(operation, request); error != MPI_SUCCESS) return error;
  operation.at_rest = operation.running = operation.failed = false;
  operation.error = MPI_SUCCESS;
  operation.begin_ns = reporting() ? monotonic_ns() : 0;
  operation.complete.store(false, std::memory_order_relaxed);
  persistence.state.store(State::active, std::memory_order_relaxed);
  detail::last_call = {.plan = operation.prepared->plan, .channels = operation.prepared->channels};
  note_latest(operation, persistence.handle);
  hand_over_start(operation);
  return MPI_SUCCESS;
}

// For a program to which errors are returned: what its wait returns is the receive's own error, and says nothing of
// what has happened.
void say_what_failed(int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (PMPI_Error_string(error, text, &length) != MPI_SUCCESS) return;
  constexpr std::string_view ours = "plait: ";
  std::string_view what(text);
  if (what.starts_with(ours)) what.remove_prefix(ours.size());
  try {
    warn(std::string("a persistent collective has failed: ").append(what));
  } catch (const std::exception&) {
    // No memory for words.
  }
}

}  // namespace

PersistentSpace* persistent_space(Communicator& communicator, const char*& reason) {
  reason = communicator.host_reason;
  if (communicator.inter || communicator.ranks == 1) return nullptr;
  if (communicator.road == Road::host) return nullptr;
  if (communicator.persistent == nullptr)
    if (reason = make_space(communicator); reason != nullptr) return nullptr;
  take_down_abandoned();
  PersistentSpace& space = *communicator.persistent;
  reason = space.communicator().host_reason;
  return space.communicator().road == Road::host ? nullptr : &space;
}

void decline_request(PersistentSpace& space) { static_cast<void>(space.take_slot(nullptr, false)); }

int make_request(Operation& operation, PersistentSpace& space, MPI_Request* request) {
  Persistence& persistence = operation.persistence;
  persistence.space = operation.communicator->persistent;
  operation.communicator = &space.communicator();
  const bool wanted = operation.reason == nullptr && prepare(operation);
  const auto slot = space.take_slot(&operation, wanted);
  if (!slot) {
    if (operation.reason == nullptr) operation.reason = reasons::no_persistent_slot;
    persistence.space.reset();
    return MPI_SUCCESS;
  }
  persistence.slot = *slot;
  operation.reason = nullptr;
  const int error = make_handle(operation);
  if (error != MPI_SUCCESS) {
    leave_out(space.communicator(), error);
    space.note_failure();
    forget(operation);
    return error;
  }
  detail::last_call = {.plan = operation.prepared->plan, .channels = operation.prepared->channels};
  *request = operation.persistence.handle;
  return MPI_SUCCESS;
}

// The handle of a request that the host frees with its error may soon be another one's.
void conclude_start(Operation& operation) {
  const bool failed = operation.error != MPI_SUCCESS, by_door = of_door();
  const bool gone = failed && !by_door && error_frees_receive;
  // The receive knows nothing of the collective's communicator, whose error handler is to be told.
  if (failed && !by_door) {
    raise_error(raising(*operation.communicator), operation.error);
    say_what_failed(operation.error);
  }
  if (gone) strike_out(operation.persistence.handle);
  const MPI_Request handle = operation.persistence.handle;
  const int tag = operation.persistence.tag, error = operation.error;
  State state = State::active;
  const bool kept = operation.persistence.state.compare_exchange_strong(state, State::inactive);
  operation.complete.store(true, std::memory_order_release);
  if (by_door)
    host().complete_persistent_request(handle, error);
  else
    complete_receive(tag, failed);
  if (kept && !gone) return;
  std::shared_ptr<PersistentSpace> space = forget(operation);
  const auto lock = registry().lock();
  registry().abandoned.push_back(std::move(space));
}

void request_freed(MPI_Request handle) {
  Operation* operation = find(handle);
  if (operation == nullptr) return;
  strike_out(handle);
  let_go(*operation);
}

void finish_persistent() {
  progress();  // what the helper thread has left
  std::vector<Operation*> left;
  {
    const auto lock = registry().lock();
    for (const auto& [handle, operation] : registry().by_handle) left.push_back(operation);
    registry().by_handle.clear();
    alive.store(0, std::memory_order_release);
  }
  std::vector<std::shared_ptr<PersistentSpace>> spaces;
  for (Operation* operation : left)
    if (operation->persistence.state.load() == State::inactive)
      forget(*operation);
    else
      spaces.push_back(operation->persistence.space);  // it is still among those that progress() moves on
  take_down_abandoned();
}

}  // namespace plait::plugin

namespace plait::plugin::door {

int start(MPI_Request* request) {
  Operation* operation = request != nullptr ? find(*request) : nullptr;
  return operation != nullptr ? start_one(*operation, request) : host().start(request);
}

int startall(int count, MPI_Request requests[]) {
  if (alive.load(std::memory_order_acquire) == 0 || requests == nullptr) return host().startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i)
    if (const int error = start(&requests[i]); error != MPI_SUCCESS) code = error;
  return code;
}

int request_free(MPI_Request* request) {
  Operation* operation = request != nullptr ? find(*request) : nullptr;
  if (operation == nullptr) return host().request_free(request);
  strike_out(operation->persistence.handle);
  const int error = host().request_free(request);
  let_go(*operation);
  return error;
}

}  // namespace plait::plugin::door
