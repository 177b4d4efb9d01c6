// Tells the ranks of a node that one of them has failed, through marks on the control blocks (tl/shm/control_block.h).
#pragma once

#include <cstddef>
#include <vector>

#include "core/status.h"
#include "tl/shm/control_block.h"

namespace plait::tl::detail {

// One rank's view of the marks. Not thread-safe; nothing blocks.
class FailureMarks {
 public:
  FailureMarks() = default;
  // By local index: the control blocks, and the ranks in the communicator.
  FailureMarks(const std::vector<ControlBlock>& control_blocks, const std::vector<int>& ranks, std::size_t self);

  // This rank has failed because of `cause`, or after the failure that look() has found. The first call counts.
  void set(const Status& cause);
  bool is_set(std::size_t local) const { return marks_[local]->first_failed.load(std::memory_order_acquire) != 0; }
  // A failure that another rank has marked: peer_failed, with the rank and its reason; or peer_left, where the ranks
  // that have marked one know no more than that another one cut its connection.
  Status look();
  // The same, but for the echo of what this rank itself has told.
  Status of_another();

 private:
  std::vector<FailureMark*> marks_;
  std::vector<int> ranks_;
  std::size_t self_ = 0;
  const FailureMark* found_ = nullptr;
};

}  // namespace plait::tl::detail
