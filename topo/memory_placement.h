// Places memory on NUMA nodes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/status.h"

namespace plait::topo {

// Whole pages, and the NUMA node that they are to lie on (logical index, as in Location); -1: anywhere.
struct PlacedRange {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  int numa = -1;
};

// Pages of these ranges that are allocated from now on come from their nodes as long as those have room; of a shared
// mapping, whichever process touches them first, or reserves them. Takes milliseconds: it loads hwloc's topology. The
// first failure does not keep the other ranges from being placed. Thread-safe; does not block.
Status place_memory(std::span<const PlacedRange> ranges);

}  // namespace plait::topo
