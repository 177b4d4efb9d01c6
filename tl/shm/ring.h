// The layout of the segment: one ring of slots for each ordered pair of local ranks.
//
// A slot is a header, one cache line, and a data area. The writer fills the slot and then stores its number + 1 into
// `sequence`; that is the only line a small message touches. The reader, in turn, counts what it has drained in a line
// of its own, which the writer looks at only when it has no free slot left, or waits for a single copy to end.
//
// A long message may be announced for a single copy instead, if the writer's rule says so: the slot then names its
// spans. The reader answers in `claims`. It accepts with its own spans in the slot: the two sides then claim the
// message's pieces one by one, the reader from the front (it pulls), the writer from the back (it pushes), and the
// reader frees the slot at the end. Or it refuses and frees the slot at once: the message follows in fragments.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tl/channel.h"
#include "tl/shm/doorbell.h"
#include "tl/shm/remote_span.h"
#include "tl/transfer_queue.h"

namespace plait::tl::detail {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t inline_bytes = 56;

enum class SlotKind : std::uint32_t {
  fragment,     // `length` bytes of the message: inline when they fit, else in the data area
  single_copy,  // the sender's `length` spans, for the reader to fetch: inline when they fit, else in the data area
};

struct alignas(cache_line) Slot {
  std::atomic<std::uint32_t> sequence;  // number of the fragment it holds, + 1; wraps
  std::uint32_t kind_and_length;        // kind in the top bit
  alignas(8) std::byte payload[inline_bytes];

  SlotKind kind() const { return static_cast<SlotKind>(kind_and_length >> 31); }
  std::uint32_t length() const { return kind_and_length & 0x7fffffffu; }
  void describe(SlotKind kind, std::size_t length) {
    kind_and_length = static_cast<std::uint32_t>(kind) << 31 | static_cast<std::uint32_t>(length);
  }
  // Where `bytes` of content stand.
  std::byte* content(std::size_t bytes) {
    return bytes <= inline_bytes ? payload : reinterpret_cast<std::byte*>(this + 1);
  }
};
static_assert(sizeof(Slot) == cache_line);

struct RingControl {
  alignas(cache_line) std::atomic<std::uint32_t> drained;  // fragments; written by the reader only
  // Of the last announced message: which it is (its slot's number + 1, upper half) and how many of its pieces have been
  // claimed by the two sides together, or `refused` (lower half). Set by the reader, counted up by both.
  alignas(cache_line) std::atomic<std::uint64_t> claims;
  std::atomic<std::uint64_t> pushed;  // pieces the writer has pushed since the beginning
};
static_assert(sizeof(RingControl) == 2 * cache_line);

inline constexpr std::uint32_t refused = 0xffffffffu;
constexpr std::uint64_t claims_of(std::uint32_t mark, std::uint32_t claimed) {
  return std::uint64_t{mark} << 32 | claimed;
}

// How the bytes of a pair are used. The number of slots is a power of two, so that the wrap-around of the 32-bit
// fragment numbers does no harm.
struct RingShape {
  std::uint32_t slots = 0;
  std::uint32_t area_bytes = 0;  // of one slot's data area, a multiple of the cache line

  std::size_t stride() const { return sizeof(Slot) + area_bytes; }
  std::size_t bytes() const { return sizeof(RingControl) + slots * stride(); }
};

// Large slots carry long messages faster (1 MiB allreduce of two ranks: 16 x 64 KiB 72 us, 16 x 16 KiB 93, 4 x 64 KiB
// 79, 8 x 8 KiB 122, 4 x 5 KiB 161); from 64 KiB on there is little to gain. At least four where that leaves some room,
// so that writer and reader can work at the same time.
inline constexpr std::size_t largest_area = 64 * 1024;
inline constexpr std::size_t generous_pair_bytes = sizeof(RingControl) + 16 * (sizeof(Slot) + largest_area);
inline constexpr std::size_t least_pair_bytes = sizeof(RingControl) + 2 * (sizeof(Slot) + cache_line);

constexpr std::size_t pair_count(int ranks) {
  return ranks < 2 ? 1 : static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks - 1);
}

// No slots when `pair_bytes` is less than least_pair_bytes.
constexpr RingShape ring_shape(std::size_t pair_bytes) {
  struct Candidate {
    std::uint32_t slots;
    std::size_t least_area;
  };
  constexpr Candidate candidates[] = {{16, largest_area}, {8, 32 * 1024}, {4, 1024}, {2, cache_line}};
  for (const Candidate& candidate : candidates) {
    const std::size_t fixed = sizeof(RingControl) + candidate.slots * sizeof(Slot);
    if (pair_bytes < fixed + candidate.slots * candidate.least_area) continue;
    const std::size_t area = (pair_bytes - fixed) / candidate.slots / cache_line * cache_line;
    return {candidate.slots, static_cast<std::uint32_t>(area < largest_area ? area : largest_area)};
  }
  return {};
}

class FailureMarks;

// One side's view of a ring.
struct Ring {
  RingControl* control = nullptr;
  RingShape shape;
  int peer_rank = -1;
  int peer_process = -1;
  std::uint64_t single_copy_from = ~std::uint64_t{0};  // bytes of a message
  const Doorbells* bells = nullptr;                    // not owned
  const FailureMarks* failures = nullptr;              // not owned
  std::size_t peer = 0;                                // its local index

  Slot& slot(std::uint32_t fragment) const {
    std::byte* slots = reinterpret_cast<std::byte*>(control + 1);
    return *reinterpret_cast<Slot*>(slots + (fragment & (shape.slots - 1)) * shape.stride());
  }
  // After each store that the peer may be waiting for.
  void wake_peer() const { bells->ring(peer); }
  std::uint32_t area_bytes() const { return shape.area_bytes; }
  std::size_t span_capacity() const { return shape.area_bytes / sizeof(RemoteSpan); }
};

}  // namespace plait::tl::detail
