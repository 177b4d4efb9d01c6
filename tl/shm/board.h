// What a rank of a node shows the others in the shared segment, for group steps: its board.
//
// Operations on boards are numbered from 0, the same on all ranks of the node. For operation n a rank fills slot n
// modulo their number and stores n + 1 into it: the others read it there, one write and one read a peer. A slot is
// filled again only when all ranks have finished the operation that used it before.
//
// Long data goes through stages: an operation is cut into rounds, counted through all operations, and round r uses
// stage r modulo their number. The counters say how far a rank is; all only grow, and wrap around.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tl/shm/ring.h"

namespace plait::detail {

inline constexpr std::uint32_t board_slots = 8;
inline constexpr std::uint32_t board_stages = 4;

// Each counter in a line of its own.
struct BoardControl {
  alignas(cache_line) std::atomic<std::uint32_t> finished;   // operations
  alignas(cache_line) std::atomic<std::uint32_t> copied_in;  // rounds whose data lies in the stage
  alignas(cache_line) std::atomic<std::uint32_t> reduced;    // rounds whose share of the result lies in the stage
  alignas(
      cache_line) std::atomic<std::uint32_t> copied_out;  // rounds for which the others' stages are not needed any more
};

struct alignas(cache_line) BoardSlot {
  std::atomic<std::uint32_t> sequence;  // number of the operation, + 1
  std::uint32_t unused;
  alignas(8) std::byte payload[inline_bytes];
};
static_assert(sizeof(BoardSlot) == cache_line);

// How the bytes of one rank's board are used.
struct BoardShape {
  std::size_t slot_area = 0;    // bytes behind each slot's line
  std::size_t stage_bytes = 0;  // of each stage; 0: the board is too small

  std::size_t slot_stride() const { return sizeof(BoardSlot) + slot_area; }
  std::size_t stages_offset() const { return sizeof(BoardControl) + board_slots * slot_stride(); }
  std::size_t bytes() const { return stages_offset() + board_stages * stage_bytes; }
};

inline constexpr std::size_t largest_slot_area = 8 * 1024;
inline constexpr std::size_t largest_stage = 128 * 1024;
// A stage must hold an element, which has 4096 bytes at most.
inline constexpr std::size_t least_stage = 4096;
inline constexpr std::size_t least_board_bytes =
    sizeof(BoardControl) + board_slots * sizeof(BoardSlot) + board_stages * least_stage;
inline constexpr std::size_t generous_board_bytes =
    sizeof(BoardControl) + board_slots * (sizeof(BoardSlot) + largest_slot_area) + board_stages * largest_stage;

// A quarter for the slots, the rest for the stages.
constexpr BoardShape board_shape(std::size_t bytes) {
  if (bytes < least_board_bytes) return {};
  BoardShape shape;
  const std::size_t spare = bytes - least_board_bytes;
  const std::size_t area = spare / 4 / board_slots / cache_line * cache_line;
  shape.slot_area = area < largest_slot_area ? area : largest_slot_area;
  const std::size_t stage = (bytes - shape.stages_offset()) / board_stages / cache_line * cache_line;
  shape.stage_bytes = stage < largest_stage ? stage : largest_stage;
  return shape;
}

// Zeroed memory is a fresh board.
class Board {
 public:
  Board() = default;
  Board(std::byte* base, BoardShape shape) : base_(base), shape_(shape) {}

  BoardControl& control() const { return *reinterpret_cast<BoardControl*>(base_); }
  BoardSlot& slot(std::uint32_t operation) const {
    std::byte* slots = base_ + sizeof(BoardControl);
    return *reinterpret_cast<BoardSlot*>(slots + operation % board_slots * shape_.slot_stride());
  }
  // Where `bytes` of a slot's content stand: in its line when they fit.
  std::byte* content(std::uint32_t operation, std::size_t bytes) const {
    BoardSlot& at = slot(operation);
    return bytes <= inline_bytes ? at.payload : reinterpret_cast<std::byte*>(&at + 1);
  }
  std::byte* stage(std::uint32_t round) const {
    return base_ + shape_.stages_offset() + round % board_stages * shape_.stage_bytes;
  }

 private:
  std::byte* base_ = nullptr;
  BoardShape shape_;
};

// Whether a counter that only grows, and wraps around, has come to `wanted`.
inline bool reached(std::uint32_t counter, std::uint32_t wanted) {
  return static_cast<std::int32_t>(counter - wanted) >= 0;
}

}  // namespace plait::detail
