// Who says how the first operations of a communicator's queue run: each by itself, or several as one. Without one each
// runs by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct Operation;       // progress/operation.h
struct OperationQueue;  // communicator.h

// Belongs to the thread that is busy with progress().
class Grouping {
 public:
  enum class Turn : std::uint8_t {
    by_itself,  // the first operation of the queue runs by itself
    waiting,
    moved,
    ended,  // so do the first `ended()` operations of the queue, whose results are given
    failed,
  };

  virtual ~Grouping() = default;
  // Precondition: the queue's first operation is enlisted. `may_call_host` as for Progress::progress().
  virtual Turn turn(OperationQueue& queue, bool may_call_host) = 0;
  virtual std::size_t ended() const = 0;
  virtual const Status& failure() const = 0;
  // An operation that was enlisted leaves the queue, in its order.
  virtual void note_end(Operation& operation) = 0;
};

}  // namespace plait::runtime
