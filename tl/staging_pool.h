// Buffers for pieces of messages that cannot be sent or received in place. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace plait {

// All are of one size, which only grows.
class StagingPool {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  Buffer take(std::size_t bytes) {
    if (bytes > buffer_bytes_) {
      free_.clear();
      buffer_bytes_ = bytes;
      ++generation_;
    }
    if (free_.empty()) return Buffer(new std::byte[buffer_bytes_]);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  // `generation` as it was when the buffer was taken: those from before the last growth are too small now.
  void give_back(Buffer buffer, std::uint32_t generation) {
    if (generation == generation_) free_.push_back(std::move(buffer));
  }
  std::uint32_t generation() const { return generation_; }

 private:
  std::vector<Buffer> free_;
  std::size_t buffer_bytes_ = 0;
  std::uint32_t generation_ = 0;
};

}  // namespace plait
