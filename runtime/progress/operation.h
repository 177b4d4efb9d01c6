// A non-blocking collective that Plait has taken on, from its posting until the program has let go of its request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/device/call_memory.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/device_exchange.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/neighbor_exchange.h"
#include "runtime/execution/ordered_exchange.h"
#include "runtime/execution/pair_exchange.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/progress/membership.h"
#include "runtime/team/schedule_cache.h"

namespace plait::runtime {

// What the caller's own library does of a call, in place of an execution: the operation is over when that is.
class Errand {
 public:
  virtual ~Errand() = default;
  // Of a persistent one, each time. Returns a code of the caller's.
  virtual int start() noexcept { return 0; }
  // Whether it is over. Called where the host may be called.
  virtual bool turn() noexcept = 0;
  // After that: what is left to do. Returns a code of the caller's.
  virtual int end() noexcept = 0;
};

struct Operation {
  virtual ~Operation();

  // Tells the program's request that the operation is complete. The operation may be gone afterwards. Throws nothing.
  virtual void tell() noexcept = 0;

  Communicator* communicator = nullptr;
  Request request;
  const char* reason = nullptr;  // why it is not eligible; nullptr: it is

  std::shared_ptr<PersistentSpace> space;  // of a persistent one; nullptr: it is not persistent
  std::uint32_t slot = 0;                  // in its space, the same on all ranks
  Membership membership;

  // Once it is clear that it runs here.
  std::shared_ptr<const PreparedCall> prepared;
  Execution execution;
  bool laid_out = false;                // its staging was made beforehand: of persistent operations and reshardings
  std::unique_ptr<PairExchange> pairs;  // made for the first call that needs it
  std::unique_ptr<NeighborExchange> neighbors;  // likewise; has taken a call that is prepared
  std::unique_ptr<OrderedExchange> ordered;     // likewise
  std::unique_ptr<DeviceExchange> on_devices;   // likewise
  // Of an exchange by pairs that runs with longer slots: what it was prepared as, which it may run as the next time.
  std::shared_ptr<const PreparedCall> usual_pairs;
  CallMemory memory;
  std::unique_ptr<Errand> errand;  // nullptr: it runs here
  bool running = false;
  bool failed = false;      // for OperationQueue::failure
  bool needs_host = false;  // some part of it calls the host: only a thread that may do so moves it on

  std::atomic<bool> complete{false};  // its request is about to be told, or is

  Form form = Form::nonblocking;
  std::uint64_t begin_ns = 0;  // of the call; 0: nobody measures
  int error = 0;               // a code of the caller's
  Operation* next = nullptr;   // in the one list that it is in
};

// Whether what it runs is in the hands of operation.ordered. Precondition: it is prepared.
inline bool runs_ordered(const Operation& operation) {
  return is_ordered(operation.request) && operation.ordered->runs_apart();
}

// Back to what it was when it was made, but for memory that is worth keeping.
void clear(Operation& operation);

}  // namespace plait::runtime
