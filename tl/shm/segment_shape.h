// How a node's segment is divided: first the control blocks of all ranks, then the rings of all ordered pairs.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tl/layer.h"
#include "tl/shm/control_block.h"
#include "tl/shm/ring.h"
#include "topo/memory_placement.h"

namespace plait::tl::detail {

struct SegmentShape {
  ControlShape control_block;
  RingShape ring;
};

constexpr std::size_t least_segment_bytes(int ranks) {
  return static_cast<std::size_t>(ranks) * least_control_bytes + pair_count(ranks) * least_pair_bytes;
}

// Half for the control blocks, but no more than they can use, and no less than they need; the rings have what is left.
// No slots, or no stages, when there is not enough for both.
constexpr SegmentShape segment_shape(std::size_t bytes, int ranks) {
  if (bytes < least_segment_bytes(ranks)) return {};
  const auto control_blocks = static_cast<std::size_t>(ranks);
  const std::size_t half = bytes / 2 / control_blocks / cache_line * cache_line;
  SegmentShape shape;
  const std::size_t most = (bytes - pair_count(ranks) * least_pair_bytes) / control_blocks / cache_line * cache_line;
  shape.control_block = control_shape(std::min(most, std::clamp(half, least_control_bytes, generous_control_bytes)));
  const std::size_t left = bytes - control_blocks * shape.control_block.bytes();
  shape.ring = ring_shape(left / pair_count(ranks) / cache_line * cache_line);
  return shape;
}

// Where the rings from one local rank to another begin. Those that a rank writes stand side by side.
inline std::size_t ring_offset(const SegmentShape& shape, std::size_t ranks, std::size_t from, std::size_t to) {
  const std::size_t pair = from * (ranks - 1) + (to < from ? to : to - 1);
  return ranks * shape.control_block.bytes() + pair * shape.ring.bytes();
}

// By local rank: its control block, then the rings that it writes. Whole pages: one that several ranks share goes to
// the first.
std::vector<PlacedRange> placed_ranges(std::byte* segment, std::size_t bytes, std::span<const int> numa_of_rank);

}  // namespace plait::tl::detail
