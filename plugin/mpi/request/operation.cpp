#include "plugin/mpi/request/operation.h"

#include <mutex>
#include <utility>

#include "plugin/mpi/host/host.h"
#include "runtime/job/job.h"
#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

struct Pool {
  std::mutex guard;
  Operation* first = nullptr;

  std::unique_lock<std::mutex> lock() {
    return threaded() ? std::unique_lock(guard) : std::unique_lock(guard, std::defer_lock);
  }
};
constinit Pool pool;

// Where the binding makes the requests, nobody sees the program wait for a persistent one: that it is complete stands
// for it.
void note_complete(Recorder& to, const MpiOperation& operation) {
  const std::uint64_t now_ns = tl::monotonic_ns();
  const bool persistent = is_persistent(operation);
  const std::uint64_t key = key_of(persistent ? operation.persistence.handle : operation.handle);
  to.note_complete(key, now_ns);
  if (persistent && host().make_persistent_request != nullptr) to.add_wait(key, {now_ns, now_ns});
}

}  // namespace

void MpiOperation::tell() noexcept {
  if (Recorder* to = recorder(); to != nullptr) [[unlikely]]
    note_complete(*to, *this);
  if (is_persistent(*this))
    persistence.conclude_start(*this);
  else if (abandoned)
    give_back(this);
  else if (host().complete_request != nullptr)
    host().complete_request(*this);
  else
    PMPI_Grequest_complete(handle);
}

MpiOperation* take_operation(Communicator& communicator, Collective collective) {
  Operation* taken = nullptr;
  {
    const auto lock = pool.lock();
    taken = pool.first;
    if (taken != nullptr) pool.first = taken->next;
  }
  MpiOperation* operation = taken != nullptr ? &mpi_of(*taken) : new MpiOperation;
  operation->next = nullptr;
  operation->communicator = &communicator;
  operation->request.call.collective = collective;
  operation->request.lists = &operation->space_of_call;
  operation->request.posted = true;
  return operation;
}

MpiOperation* take_idle_operations() {
  const auto lock = pool.lock();
  return static_cast<MpiOperation*>(std::exchange(pool.first, nullptr));
}

void give_back(MpiOperation* operation) {
  operation->types.release();
  operation->persistence.handle = MPI_REQUEST_NULL;
  operation->persistence.conclude_start = nullptr;
  operation->persistence.state.store(Persistence::State::inactive, std::memory_order_relaxed);
  operation->abandoned = false;
  clear(*operation);
  const auto lock = pool.lock();
  operation->next = pool.first;
  pool.first = operation;
}

}  // namespace plait::plugin
