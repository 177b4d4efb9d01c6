// Who says how the operations of a communicator run: each by itself, several as one, or piece by piece. Without one
// each runs by itself.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct Operation;       // progress/operation.h
struct OperationQueue;  // communicator.h
struct Request;         // request.h

// A request that the program holds, by a number of the caller's.
using RequestKey = std::uintptr_t;

class Grouping {
 public:
  enum class Turn : std::uint8_t {
    by_itself,  // the first operation of the queue runs by itself
    waiting,
    moved,
    ended,  // so do some operations of the queue, whose results are given: take_ended()
    failed,
  };

  virtual ~Grouping() = default;

  // ---- For the thread that posts, in the order of posting; of starts, for the busy one, in the agreed order ----

  // An operation that is eligible, prepared or the host's: Operation::membership says whether the grouping has a word
  // in how it runs. Throws where memory is short.
  virtual void enlist(Operation& operation) = 0;
  // One that was enlisted has this request, or one that is about to be started and will be enlisted.
  virtual void note_request(RequestKey request, const Operation& operation) noexcept = 0;
  // It is on its way, and the program goes back to what it computes.
  virtual void note_posted() {}
  // A blocking call is about to be made: whether it is to be posted and waited for, as one of the grouping's. The same
  // on all ranks.
  virtual bool takes_blocking(const Request&) { return false; }
  // The program waits for all that it has posted. Thread-safe.
  virtual void note_wait_for_all() {}

  // ---- For the thread that is busy with progress() ----

  // Precondition: the queue's first operation is enlisted. `may_call_host` as for Progress::progress().
  virtual Turn turn(OperationQueue& queue, bool may_call_host) = 0;
  // After Turn::ended: one of those that have, until it was taken out of the queue; then the next. nullptr: no more.
  virtual Operation* take_ended(OperationQueue& queue) = 0;
  virtual const Status& failure() const = 0;
  // An operation that was enlisted leaves the queue.
  virtual void note_end(Operation& operation) = 0;
};

}  // namespace plait::runtime
