// How many files communicators may hold open.
#pragma once

#include <cstddef>
#include <utility>

namespace plait::runtime {

// Files that this process may still open. Looks into /proc; 0 where that cannot be read.
std::size_t free_descriptors();

// File descriptors that a communicator may come to hold, so that those of many communicators leave the program its own:
// all of them together get half of what the process may still open.
class DescriptorShare {
 public:
  DescriptorShare() = default;
  // Thread-safe. False where so many are not left: then this one holds none. Precondition: it holds none.
  bool take(std::size_t count);
  DescriptorShare(DescriptorShare&& other) noexcept : count_(std::exchange(other.count_, 0)) {}
  DescriptorShare& operator=(DescriptorShare&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~DescriptorShare() { give_back(); }

 private:
  void give_back();

  std::size_t count_ = 0;
};

}  // namespace plait::runtime
