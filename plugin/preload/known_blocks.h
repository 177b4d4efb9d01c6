// The source of large blocks, once it is known, for the functions of the C library that libplait.so stands in front of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/preload/implementation.h"

namespace plait::plugin::preload {

struct KnownBlocks {
  BlockSource source;
  // The source's range. The bytes are stored last: 0 as long as there is no source.
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};

  [[gnu::always_inline]] bool holds(const void* address) const {
    const std::size_t range = bytes.load(std::memory_order_acquire);
    return reinterpret_cast<std::uintptr_t>(address) - begin.load(std::memory_order_relaxed) < range;
  }
  // Whether some of [address, address + length) lies in the range.
  bool overlaps(const void* address, std::size_t length) const {
    const std::size_t range = bytes.load(std::memory_order_acquire);
    const std::uintptr_t first = begin.load(std::memory_order_relaxed);
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    return from < first ? length > first - from && range > 0 : from - first < range && length > 0;
  }
};

extern constinit KnownBlocks known_blocks;

}  // namespace plait::plugin::preload
