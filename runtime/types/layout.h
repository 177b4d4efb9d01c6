// How the elements of a call's data lie in the caller's memory. A local matter: the other ranks never know it (design
// rule 1). What a layout means beyond these figures only the caller knows (execution/caller.h).
#pragma once

#include <cstddef>

#include "runtime/layer.h"

namespace plait::runtime {

struct Layout {
  std::size_t size = 0;       // bytes of data of an element
  std::ptrdiff_t extent = 0;  // bytes from one element to the next
  std::ptrdiff_t lower_bound = 0;
  std::ptrdiff_t true_lower_bound = 0;
  std::size_t true_extent = 0;
  bool contiguous = false;  // any number of elements lies in memory exactly as it is packed
  bool gapless = false;     // an element lies in memory as it is packed, from its true lower bound on
};

// Bytes one after the other; from the address that the program names.
struct ByteRun {
  std::ptrdiff_t begin = 0;
  std::size_t bytes = 0;
  bool operator==(const ByteRun&) const = default;
};

// As much data as there is room, nothing outside: then only the order of the parts is left to look at.
inline bool fills_its_extent(const Layout& measured) {
  return measured.lower_bound == 0 && measured.true_lower_bound == 0 &&
         measured.extent == static_cast<std::ptrdiff_t>(measured.true_extent) && measured.size == measured.true_extent;
}

}  // namespace plait::runtime
