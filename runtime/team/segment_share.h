// What shared memory a process has mapped for its communicators, so that many of them do not eat the machine's memory.
#pragma once

#include <cstddef>
#include <utility>

namespace plait::runtime {

// A segment that counts for as long as this lives.
class SegmentShare {
 public:
  SegmentShare() = default;
  SegmentShare(std::size_t bytes, bool made);  // `made` by this process: it counts for the node
  SegmentShare(SegmentShare&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), made_(std::exchange(other.made_, false)) {}
  SegmentShare& operator=(SegmentShare&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(made_, other.made_);
    return *this;
  }
  ~SegmentShare();
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  bool made_ = false;
};

// By all that count. Thread-safe.
std::size_t mapped_segment_bytes();

}  // namespace plait::runtime
