// Where a sequence repeats itself at its end. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/layer.h"

namespace plait::runtime {

struct Repeat {
  std::size_t length = 0;  // 0: there is none
  std::size_t first = 0;   // where the first repetition begins: from there on the sequence has this period
};

// The shortest period of so many last elements as make `least_times` whole periods and `least_covered` elements.
// Linear in time and memory.
Repeat repeat_at_end(std::span<const std::uint64_t> sequence, std::size_t least_times, std::size_t least_covered);

}  // namespace plait::runtime
