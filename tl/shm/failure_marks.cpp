#include "tl/shm/failure_marks.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace plait::tl::detail {

FailureMarks::FailureMarks(const std::vector<ControlBlock>& control_blocks, const std::vector<int>& ranks,
                           std::size_t self)
    : ranks_(ranks), self_(self) {
  for (const ControlBlock& control_block : control_blocks) marks_.push_back(&control_block.control().failure);
}

void FailureMarks::set(const Status& cause) {
  if (marks_.empty() || is_set(self_)) return;
  FailureMark& own = *marks_[self_];
  std::uint32_t first = static_cast<std::uint32_t>(ranks_[self_]) + 1;
  const bool by_hearsay = cause.code() == Code::peer_left;
  if (found_ != nullptr && (by_hearsay || found_->by_hearsay == 0)) {
    first = found_->first_failed.load(std::memory_order_relaxed);
    own.by_hearsay = found_->by_hearsay;
    std::memcpy(own.reason, found_->reason, sizeof own.reason);
  } else {
    own.by_hearsay = by_hearsay ? 1 : 0;
    const std::size_t bytes = std::min(cause.message().size(), sizeof own.reason - 1);
    std::memcpy(own.reason, cause.message().data(), bytes);
    own.reason[bytes] = 0;
  }
  own.first_failed.store(first, std::memory_order_release);
}

Status FailureMarks::look() {
  for (std::size_t local = 0; local < marks_.size(); ++local) {
    if (local == self_ || !is_set(local)) continue;
    if (found_ == nullptr || found_->by_hearsay != 0) found_ = marks_[local];
  }
  if (found_ == nullptr) return {};
  const std::uint32_t rank = found_->first_failed.load(std::memory_order_relaxed) - 1;
  return {found_->by_hearsay != 0 ? Code::peer_left : Code::peer_failed,
          "shm: rank " + std::to_string(rank) + " has failed: " + found_->reason};
}

Status FailureMarks::of_another() {
  Status seen = look();
  const bool own = found_ != nullptr && found_->first_failed.load(std::memory_order_relaxed) ==
                                            static_cast<std::uint32_t>(ranks_[self_]) + 1;
  return own ? Status() : seen;
}

}  // namespace plait::tl::detail
