#include "runtime/progress/operation.h"

namespace plait::runtime {
namespace {

// What a large operation worked in is not kept.
constexpr std::size_t most_bytes_kept = 64 * 1024;

}  // namespace

Operation::~Operation() = default;

void clear(Operation& operation) {
  operation.request = {};
  operation.reason = nullptr;
  operation.space.reset();
  if (operation.membership.enlisted || operation.membership.assigned)
    operation.membership = {};  // else nothing was set
  operation.prepared.reset();
  operation.usual_pairs.reset();
  operation.execution = {};
  operation.errand.reset();
  operation.laid_out = operation.running = operation.failed = operation.needs_host = false;
  operation.complete.store(false, std::memory_order_relaxed);
  operation.begin_ns = 0;
  operation.error = 0;
  operation.next = nullptr;
  if (operation.memory.bytes() > most_bytes_kept || operation.memory.has_flow()) operation.memory.clear();
  if (operation.pairs != nullptr && operation.pairs->bytes() > most_bytes_kept) operation.pairs.reset();
  if (operation.ordered != nullptr) operation.ordered->leave(most_bytes_kept);
  if (operation.neighbors != nullptr && operation.neighbors->bytes() > most_bytes_kept) operation.neighbors.reset();
}

}  // namespace plait::runtime
