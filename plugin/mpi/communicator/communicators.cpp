#include "plugin/mpi/communicator/communicators.h"

#include <cstddef>
#include <mutex>
#include <new>

#include "runtime/progress/persistent_space.h"
#include "runtime/progress/progress.h"

namespace plait::plugin {

thread_local constinit detail::CommunicatorCache detail::communicator_cache;
constinit std::atomic<std::uint64_t> detail::communicator_generation{1};

namespace {

constinit int state_keyval = MPI_KEYVAL_INVALID;

// All that are alive, for the end of the job. The lock is never held across a call into MPI.
struct EveryCommunicator {
  std::mutex guard;
  MpiCommunicator* first = nullptr;

  void add(MpiCommunicator& communicator) {
    const std::scoped_lock lock(guard);
    communicator.next = first;
    if (first != nullptr) first->previous = &communicator;
    first = &communicator;
  }
  void remove(MpiCommunicator& communicator) {
    const std::scoped_lock lock(guard);
    if (communicator.next != nullptr) communicator.next->previous = communicator.previous;
    if (communicator.previous != nullptr)
      communicator.previous->next = communicator.next;
    else
      first = communicator.next;
  }
};
constinit EveryCommunicator every_communicator;

// For a communicator's state when there is no memory for one: the other ranks have theirs, and a rank without would
// leave its calls to the host alone. It is enough for a moment's lack.
struct Spare {
  alignas(MpiCommunicator) std::array<std::byte, sizeof(MpiCommunicator)> room;
  std::atomic<bool> used{false};
};
constinit Spare spare{};

MpiCommunicator* new_communicator(MPI_Comm handle) {
  void* room = ::operator new(sizeof(MpiCommunicator), std::nothrow);
  if (room == nullptr) {
    if (spare.used.exchange(true)) throw std::bad_alloc();
    room = spare.room.data();
  }
  return new (room) MpiCommunicator(handle);  // which throws nothing
}

void delete_communicator(MpiCommunicator* communicator) {
  communicator->~MpiCommunicator();
  if (reinterpret_cast<std::byte*>(communicator) == spare.room.data())
    spare.used = false;
  else
    ::operator delete(communicator);
}

int destroy_communicator(MPI_Comm, int, void* value, void*) {
  auto* communicator = static_cast<MpiCommunicator*>(value);
  communicator->progress.retire(*communicator);
  // Its requests outlive it.
  if (communicator->persistent != nullptr) mpi_of(communicator->persistent->communicator()).handle = MPI_COMM_NULL;
  every_communicator.remove(*communicator);
  detail::communicator_generation.fetch_add(1, std::memory_order_acq_rel);
  delete_communicator(communicator);
  return MPI_SUCCESS;
}

MpiCommunicator* make_communicator(MPI_Comm handle) {
  MpiCommunicator* communicator = new_communicator(handle);
  every_communicator.add(*communicator);
  if (PMPI_Comm_set_attr(handle, state_keyval, communicator) == MPI_SUCCESS) return communicator;
  destroy_communicator(handle, state_keyval, communicator, nullptr);
  return nullptr;
}

}  // namespace

void start_communicators() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, destroy_communicator, &state_keyval, nullptr);
}

void stop_communicators() {
  if (state_keyval != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&state_keyval);
}

void free_all_communicators() {
  while (true) {
    MPI_Comm handle = MPI_COMM_NULL;
    {
      const std::scoped_lock lock(every_communicator.guard);
      if (every_communicator.first == nullptr) return;
      handle = every_communicator.first->handle;
    }
    if (PMPI_Comm_delete_attr(handle, state_keyval) != MPI_SUCCESS) return;
  }
}

MpiCommunicator* detail::find_communicator_slowly(MPI_Comm handle) {
  if (handle == MPI_COMM_NULL) return nullptr;
  const std::uint64_t generation = communicator_generation.load(std::memory_order_acquire);
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(handle, state_keyval, &value, &found) != MPI_SUCCESS) return nullptr;
  auto* communicator = found != 0 ? static_cast<MpiCommunicator*>(value) : make_communicator(handle);
  if (communicator != nullptr)
    communicator_cache.line[CommunicatorCache::index(handle)] = {handle, communicator, generation};
  return communicator;
}

}  // namespace plait::plugin
