// Memory of the processor's that a device's driver reaches at full speed, and whose copies do not block it.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/layer.h"
#include "tl/device_driver.h"

namespace plait::runtime {

// Blocks come from a pool of the process's, since pinning takes long; from the shared heap where there is one, so that
// the node's other ranks reach them (docs/memory.md), on the device's own NUMA node where the system says which.
// Where the driver pins no more they are what they are otherwise: slower.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory() { give_back(); }
  PinnedMemory(PinnedMemory&& other) noexcept : block_(std::exchange(other.block_, {})) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }

  // At least `bytes`, contents undefined, valid until the next reserve() or give_back(). Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes, const DeviceDriver& driver, const tl::DeviceMemory& near);
  void give_back() noexcept;

  const std::byte* data() const { return block_.data; }
  std::size_t bytes() const { return block_.bytes; }
  bool pinned() const { return block_.pinned; }

  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    const DeviceDriver* driver = nullptr;
    int node = -1;
    bool pinned = false;
    bool shared = false;  // of the shared heap
  };

 private:
  Block block_;
};

}  // namespace plait::runtime
