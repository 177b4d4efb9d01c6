#include "plugin/operation.h"

#include <mutex>

namespace plait {
namespace {

// A burst of operations should not hold memory for ever, nor many large ones.
constexpr int most_kept = 512;
constexpr std::size_t most_bytes_kept = 64 * 1024;

struct Pool {
  std::mutex guard;
  Operation* first = nullptr;
  int count = 0;
};
constinit Pool pool;

// Members but those that keep their memory.
void clear(Operation& operation) {
  operation.request = {};
  operation.reason = nullptr;
  operation.handle = operation.host_request = MPI_REQUEST_NULL;
  operation.persistent = nullptr;
  operation.post_on_host = nullptr;
  operation.prepared.reset();
  operation.running = operation.needs_host = false;
  operation.begin_ns = 0;
  operation.error = MPI_SUCCESS;
  operation.next = nullptr;
  if (operation.memory.bytes() > most_bytes_kept) operation.memory = WorkMemory();
}

}  // namespace

Operation* take_operation(Communicator& communicator, Collective collective) {
  Operation* operation = nullptr;
  {
    const std::scoped_lock lock(pool.guard);
    operation = pool.first;
    if (operation != nullptr) {
      pool.first = operation->next;
      --pool.count;
    }
  }
  if (operation == nullptr) operation = new Operation;
  operation->next = nullptr;
  operation->communicator = &communicator;
  operation->request.call.collective = collective;
  operation->request.lists = &operation->lists;
  return operation;
}

void give_back(Operation* operation) {
  clear(*operation);
  {
    const std::scoped_lock lock(pool.guard);
    if (pool.count < most_kept) {
      operation->next = pool.first;
      pool.first = operation;
      ++pool.count;
      return;
    }
  }
  delete operation;
}

}  // namespace plait
