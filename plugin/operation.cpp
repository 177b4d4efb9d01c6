#include "plugin/operation.h"

#include <mutex>
#include <utility>
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

// What a large operation worked in is not kept.
constexpr std::size_t most_bytes_kept = 64 * 1024;

struct Pool {
  std::mutex guard;
  Operation* first = nullptr;

  std::unique_lock<std::mutex> lock() {
    return threaded() ? std::unique_lock(guard) : std::unique_lock(guard, std::defer_lock);
  }
};
constinit Pool pool;

// Members but those that keep their memory.
void clear(Operation& operation) {
  operation.types.release();
  operation.request = {};
  operation.reason = nullptr;
  operation.persistence.space.reset();
  operation.persistence.handle = MPI_REQUEST_NULL;
  operation.persistence.state.store(Persistence::State::inactive, std::memory_order_relaxed);
  operation.membership = {};
  operation.prepared.reset();
  operation.execution = {};
  operation.laid_out = operation.running = operation.failed = operation.needs_host = operation.abandoned = false;
  operation.complete.store(false, std::memory_order_relaxed);
  operation.begin_ns = 0;
  operation.error = MPI_SUCCESS;
  operation.next = nullptr;
  if (operation.memory.bytes() > most_bytes_kept) operation.memory = WorkMemory();
  if (operation.pairs != nullptr && operation.pairs->bytes() > most_bytes_kept) operation.pairs.reset();
}

}  // namespace

Operation* take_operation(Communicator& communicator, Collective collective) {
  Operation* operation = nullptr;
  {
    const auto lock = pool.lock();
    operation = pool.first;
    if (operation != nullptr) pool.first = operation->next;
  }
  if (operation == nullptr) operation = new Operation;
  operation->next = nullptr;
  operation->communicator = &communicator;
  operation->request.call.collective = collective;
  operation->request.lists = &operation->lists;
  return operation;
}

Operation* take_idle_operations() {
  const auto lock = pool.lock();
  return std::exchange(pool.first, nullptr);
}

void give_back(Operation* operation) {
  clear(*operation);
  const auto lock = pool.lock();
  operation->next = pool.first;
  pool.first = operation;
}

}  // namespace plait::plugin
