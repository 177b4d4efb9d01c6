// Where a call's data lies in a rank's buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/model/collective.h"

namespace plait::plan {

// A box of a row-major array: equal runs of bytes at regular distances, in nested loops. Its bytes are counted run
// after run, so that a position is found without walking and a grid takes the same memory however short its runs are.
struct RunGrid {
  struct Level {
    std::uint64_t count, stride;  // runs, or groups of them; bytes from one to the next
  };
  static constexpr int most_levels = 8;

  std::uint64_t origin = 0;                // bytes from the base of the space to the first run
  std::uint64_t run = 0;                   // bytes, positive
  int levels = 0;                          // 0: one run
  std::array<Level, most_levels> level{};  // the innermost first; counts are at least 2

  // Bytes from the base of the space to byte `at` of the grid.
  std::uint64_t offset_of(std::uint64_t at) const {
    std::uint64_t offset = origin + at % run;
    at /= run;
    for (int l = 0; l < levels; ++l) {
      const Level& one = level[static_cast<std::size_t>(l)];
      offset += at % one.count * one.stride;
      at /= one.count;
    }
    return offset;
  }
};

// Where the blocks of a resharding lie: the size of every block, and where each of this rank's input and output cells
// begins in a grid.
struct BlockPlaces {
  struct Cell {
    std::uint32_t grid;
    std::uint64_t first;  // byte of the grid
  };
  std::vector<std::uint64_t> bytes;  // by block
  std::vector<RunGrid> grids;        // of both sides
  std::vector<Cell> input, output;   // by cell
};

// Where a call's data lies in this rank's buffers, in elements from the buffer's base.
struct Placement {
  std::size_t element_bytes = 1;
  // Elements of segment s: the same for all segments (alltoall and equal shares), or from `counts` (by segment).
  std::size_t segment_elements = 0;
  const std::size_t* counts = nullptr;
  // First element of segment s in a buffer that holds all segments by rank (allgatherv's recvbuf, gather's at the
  // root); nullptr: dense, in ascending order of segment. Not owned, used during bind() only.
  const std::size_t* displacements = nullptr;
  // bcast, reduce, allreduce: elements of the whole vector, cut evenly into the plan's segments. The others leave 0.
  std::size_t vector_elements = 0;
  const BlockPlaces* places = nullptr;  // of a reshard, for which the above mean nothing. Not owned, as above
  bool in_place = false;                // input and output share memory as Semantics::aliased_output says
};
Placement dense_placement(const Call& call);

}  // namespace plait::plan
