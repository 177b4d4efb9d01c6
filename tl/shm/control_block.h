// What a rank of a node shows the others in the shared segment, for shared-memory collectives: its control block.
//
// Operations on control blocks are numbered from 0, the same on all ranks of the node. For operation n a rank fills
// slot n modulo their number and stores n + 1 into it: the others read it there, one write and one read a peer. What
// does not fit the slot stands in an area, n modulo the number of those of its kind. Both are filled again only when
// all ranks have finished the operation that used them before; there are more slots than areas, so that a root that
// waits for nobody seldom has to look. Areas are few, as each costs faults of its pages when it is used first; where
// every member waits for every other one two of them do.
//
// Long data goes through stages: an operation is cut into rounds, counted through all operations, and round r uses
// stage r modulo their number. The counters say how far a rank is; all only grow, and those of rounds wrap around.
// Operations have 64 bits: a slot that its owner has not filled for 2^32 operations would look fresh otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tl/shm/doorbell.h"
#include "tl/shm/ring.h"

namespace plait::tl::detail {

inline constexpr std::uint32_t control_slots = 64;
inline constexpr std::uint32_t areas_in_step = 2, areas_ahead = 4;
inline constexpr std::uint32_t control_areas = areas_in_step + areas_ahead;
inline constexpr std::uint32_t control_stages = 4;

// Set once, by the rank whose control block it is, when it gives the communicator up: that it has failed, who was the
// first to fail as far as it knows, and why. The others look at it when they have waited for long, and before and while
// they work on memory of the others.
struct alignas(cache_line) FailureMark {
  std::atomic<std::uint32_t> first_failed;  // rank in the communicator, + 1; 0: this rank has not failed
  std::uint32_t by_hearsay;  // 1: it knows no more than that another rank cut its connection; written before
  char reason[4 * cache_line - 2 * sizeof(std::uint32_t)];  // ends with a 0; likewise
};
static_assert(sizeof(FailureMark) == 4 * cache_line);

// Each counter in a line of its own.
struct ControlCounters {
  alignas(cache_line) std::atomic<std::uint64_t> finished;   // operations
  alignas(cache_line) std::atomic<std::uint32_t> copied_in;  // rounds whose data lies in the stage
  alignas(cache_line) std::atomic<std::uint32_t> reduced;    // rounds whose share of the result lies in the stage
  alignas(
      cache_line) std::atomic<std::uint32_t> copied_out;  // rounds for which the others' stages are not needed any more
  alignas(cache_line) std::atomic<std::uint32_t> at_work;  // 1: on memory of the others; read only after a failure
  FailureMark failure;
  Doorbell bell;
};

struct alignas(cache_line) ControlSlot {
  std::atomic<std::uint64_t> sequence;  // number of the operation, + 1
  alignas(8) std::byte payload[inline_bytes];
  std::byte behind[256];  // for what does not fit the line
};
static_assert(offsetof(ControlSlot, behind) == offsetof(ControlSlot, payload) + inline_bytes);
static_assert(sizeof(ControlSlot) == 5 * cache_line);

// Whether all members of an operation wait for all others, or some go ahead. The same on all of them.
enum class Pace : bool { in_step, ahead };
constexpr std::uint32_t areas_of(Pace pace) { return pace == Pace::in_step ? areas_in_step : areas_ahead; }

// How the bytes of one rank's control block are used.
struct ControlShape {
  std::size_t area_bytes = 0;   // of each area
  std::size_t stage_bytes = 0;  // of each stage; 0: the control block is too small

  static constexpr std::size_t areas_offset() { return sizeof(ControlCounters) + control_slots * sizeof(ControlSlot); }
  constexpr std::size_t stages_offset() const { return areas_offset() + control_areas * area_bytes; }
  std::size_t bytes() const { return stages_offset() + control_stages * stage_bytes; }
};

inline constexpr std::size_t largest_area_bytes = 64 * 1024;
inline constexpr std::size_t largest_stage = 128 * 1024;
// A stage must hold an element, which has 4096 bytes at most.
inline constexpr std::size_t least_stage = 4096;
inline constexpr std::size_t least_control_bytes =
    sizeof(ControlCounters) + control_slots * sizeof(ControlSlot) + control_stages * least_stage;
inline constexpr std::size_t generous_control_bytes = sizeof(ControlCounters) + control_slots * sizeof(ControlSlot) +
                                                      control_areas * largest_area_bytes +
                                                      control_stages * largest_stage;

// Half for the areas, half for the stages.
constexpr ControlShape control_shape(std::size_t bytes) {
  if (bytes < least_control_bytes) return {};
  ControlShape shape;
  const std::size_t spare = bytes - least_control_bytes;
  const std::size_t area = spare / 2 / control_areas / cache_line * cache_line;
  shape.area_bytes = area < largest_area_bytes ? area : largest_area_bytes;
  const std::size_t stage = (bytes - shape.stages_offset()) / control_stages / cache_line * cache_line;
  shape.stage_bytes = stage < largest_stage ? stage : largest_stage;
  return shape;
}

// Zeroed memory is a fresh control block.
class ControlBlock {
 public:
  ControlBlock() = default;
  ControlBlock(std::byte* base, ControlShape shape) : base_(base), shape_(shape) {}

  ControlCounters& control() const { return *reinterpret_cast<ControlCounters*>(base_); }
  ControlSlot& slot(std::uint64_t operation) const {
    std::byte* slots = base_ + sizeof(ControlCounters);
    return *reinterpret_cast<ControlSlot*>(slots + operation % control_slots * sizeof(ControlSlot));
  }
  static constexpr bool fits_slot(std::size_t bytes) { return bytes <= sizeof(ControlSlot::behind); }
  // Where `bytes` of an operation's content stand.
  std::byte* content(std::uint64_t operation, std::size_t bytes, Pace pace) const {
    if (bytes <= inline_bytes) return slot(operation).payload;
    if (fits_slot(bytes)) return slot(operation).behind;
    const std::uint64_t area = operation % areas_of(pace) + (pace == Pace::ahead ? areas_in_step : 0);
    return base_ + ControlShape::areas_offset() + area * shape_.area_bytes;
  }
  // Content whose length only its giver knows, which says it in the line: where it stands. Behind that as far as there
  // is room, which is more than for other content.
  static constexpr bool fits_slot_measured(std::size_t bytes) {
    return bytes <= sizeof(ControlSlot::payload) + sizeof(ControlSlot::behind) - sizeof(std::uint64_t);
  }
  std::byte* measured_content(std::uint64_t operation, std::size_t bytes, Pace pace) const {
    if (fits_slot_measured(bytes)) return slot(operation).payload + sizeof(std::uint64_t);
    return content(operation, bytes, pace);
  }
  std::uint64_t& measure(std::uint64_t operation) const {
    return *reinterpret_cast<std::uint64_t*>(slot(operation).payload);
  }
  std::byte* stage(std::uint32_t round) const {
    return base_ + shape_.stages_offset() + round % control_stages * shape_.stage_bytes;
  }

 private:
  std::byte* base_ = nullptr;
  ControlShape shape_;
};

// Whether a counter that only grows, and wraps around, has come to `wanted`.
inline bool reached(std::uint32_t counter, std::uint32_t wanted) {
  return static_cast<std::int32_t>(counter - wanted) >= 0;
}

}  // namespace plait::tl::detail
