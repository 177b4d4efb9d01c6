#include "plugin/mpi/request/persistent_requests.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/immortal.h"
#include "core/log.h"
#include "plugin/layer.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/request/persistent_receive.h"
#include "runtime/job/job.h"
#include "runtime/progress/persistent_space.h"

namespace plait::plugin {
namespace {

using State = Persistence::State;

// All that the program holds, by handle. The lock is never held across a call into MPI.
struct Registry {
  std::mutex guard;
  std::unordered_map<MPI_Request, MpiOperation*> by_handle;
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

// What this thread asked for last, good as long as no handle was added, changed or struck out since: a program starts
// the same requests over and over.
struct LastFound {
  MPI_Request handle{};
  MpiOperation* operation = nullptr;
  std::uint64_t generation = 0;
};
thread_local constinit LastFound last_found __attribute__((tls_model("initial-exec")));
constinit std::atomic<std::uint64_t> generation{1};

void outdate() { generation.fetch_add(1, std::memory_order_acq_rel); }

// The list keeps its memory.
std::shared_ptr<PersistentSpace> take_abandoned() {
  const auto lock = registry().lock();
  if (registry().abandoned.empty()) return nullptr;
  std::shared_ptr<PersistentSpace> last = std::move(registry().abandoned.back());
  registry().abandoned.pop_back();
  return last;
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

bool any_persistent() { return alive.load(std::memory_order_acquire) != 0; }

MpiOperation* find(MPI_Request handle) {
  if (alive.load(std::memory_order_acquire) == 0) return nullptr;
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (last_found.generation == now && last_found.handle == handle) return last_found.operation;
  const auto lock = registry().lock();
  const auto found = registry().by_handle.find(handle);
  last_found = {handle, found != registry().by_handle.end() ? found->second : nullptr, now};
  return last_found.operation;
}

void enlist(MpiOperation& operation) {
  const auto lock = registry().lock();
  registry().by_handle.emplace(operation.persistence.handle, &operation);
  outdate();
  // One place for each that may end within progress(), where nothing may be in want of memory.
  registry().abandoned.reserve(registry().abandoned.size() + registry().by_handle.size());
  alive.fetch_add(1, std::memory_order_release);
}

// The host has started it under another handle. Needs no memory.
void rename(MpiOperation& operation, MPI_Request handle) {
  const auto lock = registry().lock();
  auto entry = registry().by_handle.extract(operation.persistence.handle);
  outdate();
  operation.persistence.handle = handle;
  if (entry.empty()) return;
  entry.key() = handle;
  registry().by_handle.insert(std::move(entry));
}

void strike_out(MPI_Request handle) {
  const auto lock = registry().lock();
  if (registry().by_handle.erase(handle) != 0) alive.fetch_sub(1, std::memory_order_release);
  outdate();
}

void take_down_abandoned() {
  while (take_abandoned() != nullptr) {
  }
}

// Whether the binding has requests of its own for them.
bool of_binding() { return host().make_persistent_request != nullptr; }

// Returns what the operation ran on.
std::shared_ptr<PersistentSpace> forget(MpiOperation& operation) {
  std::shared_ptr<PersistentSpace> space = std::move(operation.space);
  if (space != nullptr) space->give_slot_back(operation.slot);
  if (operation.persistence.tag != 0) give_tag_back(std::exchange(operation.persistence.tag, 0));
  give_back(&operation);
  return space;
}

MPI_Comm raising(const Communicator& communicator) {
  const MPI_Comm comm = mpi_of(communicator).handle;
  return comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD;
}

// The handle of a request that the host frees with its error may soon be another one's.
void conclude_start(MpiOperation& operation) {
  const bool failed = operation.error != MPI_SUCCESS, by_binding = of_binding();
  const bool gone = failed && !by_binding && error_frees_receive;
  // The receive knows nothing of the collective's communicator, whose error handler is to be told.
  if (failed && !by_binding) {
    raise_error(raising(*operation.communicator), operation.error);
    say_what_failed(operation.error);
  }
  if (gone) strike_out(operation.persistence.handle);
  const MPI_Request handle = operation.persistence.handle;
  const int tag = operation.persistence.tag, error = operation.error;
  State state = State::active;
  const bool kept = operation.persistence.state.compare_exchange_strong(state, State::inactive);
  operation.complete.store(true, std::memory_order_release);
  if (by_binding)
    host().complete_persistent_request(handle, error);
  else
    complete_receive(tag, failed);
  if (kept && !gone) return;
  std::shared_ptr<PersistentSpace> space = forget(operation);
  const auto lock = registry().lock();
  if (space != nullptr) registry().abandoned.push_back(std::move(space));
}

std::vector<MpiOperation*> take_all() {
  std::vector<MpiOperation*> left;
  const auto lock = registry().lock();
  for (const auto& [handle, operation] : registry().by_handle) left.push_back(operation);
  registry().by_handle.clear();
  outdate();
  alive.store(0, std::memory_order_release);
  return left;
}

}  // namespace plait::plugin
