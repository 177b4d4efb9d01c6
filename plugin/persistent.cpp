#include "plugin/persistent.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugin/host.h"
#include "plugin/layout.h"

namespace plait {
namespace {

// All that the program holds, by handle. The lock is never held across a call into MPI.
struct Registry {
  std::mutex guard;
  std::unordered_map<MPI_Request, PersistentRequest*> by_handle;
  std::vector<int> free_tags;
  int next_tag = 1;
};

Registry& registry() {
  static auto* made = new Registry;  // never destroyed: requests may be freed until the process ends
  return *made;
}

constinit std::atomic<int> alive{0};

PersistentRequest* find(MPI_Request handle) {
  if (alive.load(std::memory_order_acquire) == 0) return nullptr;
  const std::scoped_lock lock(registry().guard);
  const auto found = registry().by_handle.find(handle);
  return found != registry().by_handle.end() ? found->second : nullptr;
}

int take_tag() {
  const std::scoped_lock lock(registry().guard);
  Registry& all = registry();
  if (all.free_tags.empty()) return all.next_tag++;
  const int tag = all.free_tags.back();
  all.free_tags.pop_back();
  return tag;
}

void forget(PersistentRequest* persistent) {
  {
    const std::scoped_lock lock(registry().guard);
    registry().free_tags.push_back(persistent->tag);
  }
  persistent->types.release();
  delete persistent;
}

// The receive is started first, so that the completion finds it.
int start_one(PersistentRequest& persistent, MPI_Request* request) {
  if (const int error = host().start(request); error != MPI_SUCCESS) return error;
  persistent.active = true;
  const int error = persistent.post(persistent);
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  persistent.active = false;
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, persistent.tag, quiet_communicator());
  return error;
}

}  // namespace

int add_persistent(std::unique_ptr<PersistentRequest> made, MPI_Request* request) {
  PersistentRequest* persistent = made.release();
  persistent->tag = take_tag();
  const int error = PMPI_Recv_init(nullptr, 0, MPI_BYTE, 0, persistent->tag, quiet_communicator(), &persistent->handle);
  if (error != MPI_SUCCESS) {
    forget(persistent);
    return error;
  }
  *request = persistent->handle;
  const std::scoped_lock lock(registry().guard);
  registry().by_handle.emplace(persistent->handle, persistent);
  alive.fetch_add(1, std::memory_order_release);
  return MPI_SUCCESS;
}

void complete_persistent(Operation& operation) {
  PersistentRequest* persistent = operation.persistent;
  // The receive succeeds in any case: the communicator's error handler is told.
  if (operation.error != MPI_SUCCESS) raise_error(operation.communicator->handle, operation.error);
  give_back(&operation);
  persistent->active = false;
  const int tag = persistent->tag;
  const bool freed = persistent->freed;
  PMPI_Send(nullptr, 0, MPI_BYTE, 0, tag, quiet_communicator());
  if (freed) forget(persistent);
}

}  // namespace plait

namespace plait::door {

int start(MPI_Request* request) {
  PersistentRequest* persistent = request != nullptr ? find(*request) : nullptr;
  return persistent != nullptr ? start_one(*persistent, request) : host().start(request);
}

// In the order of the list, which all ranks share as far as collectives are in it.
int startall(int count, MPI_Request requests[]) {
  if (alive.load(std::memory_order_acquire) == 0 || requests == nullptr) return host().startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i)
    if (const int error = start(&requests[i]); error != MPI_SUCCESS) code = error;
  return code;
}

int request_free(MPI_Request* request) {
  PersistentRequest* persistent = request != nullptr ? find(*request) : nullptr;
  if (persistent == nullptr) return host().request_free(request);
  {
    const std::scoped_lock lock(registry().guard);
    registry().by_handle.erase(persistent->handle);
    alive.fetch_sub(1, std::memory_order_release);
  }
  const int error = host().request_free(request);
  if (persistent->active)
    persistent->freed = true;  // the collective goes on
  else
    forget(persistent);
  return error;
}

}  // namespace plait::door
