// Where the slices of an exchange lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

// A slice in its owner's output: equal runs of bytes, a row's pitch apart. Where runs differ in their slices' rows,
// these are the most.
struct Block {
  std::uint64_t offset = 0;     // of the first run
  std::uint64_t row_bytes = 0;  // of a run
  std::uint64_t rows = 0;
  bool kept = false;  // it stays in the plan's memory, where its owner reads it: it is no part of the output
  // Of what is kept: it lies in the place of the slice before, which is as large. The listener says whose rows are
  // where.
  bool shares_place = false;
  std::uint64_t bytes() const { return row_bytes * rows; }
};
using Blocks = std::vector<Block>;

// What a slice has in a run, where runs differ: so many rows of its place, from the first one on.
struct SliceRows {
  std::int64_t first = 0, count = 0;
};
// How long the slice is in a run, and how far from the beginning of its place. `rows`: by slice; nullptr: all that it
// may have.
inline std::uint64_t bytes_in_run(const Block& block, const SliceRows* rows, std::size_t slice) {
  return rows != nullptr ? block.row_bytes * static_cast<std::uint64_t>(rows[slice].count) : block.bytes();
}
inline std::uint64_t offset_in_run(const Block& block, const SliceRows* rows, std::size_t slice) {
  return rows != nullptr ? block.row_bytes * static_cast<std::uint64_t>(rows[slice].first) : 0;
}

// What a rank owns: a matrix, row after row.
struct Output {
  std::byte* data = nullptr;
  std::uint64_t pitch = 0;  // bytes from one row to the next
  std::uint64_t bytes = 0;
};

// Where a slice's rows are to be written.
struct Target {
  std::byte* rows = nullptr;
  std::uint64_t pitch = 0;
};

inline constexpr std::uint64_t slice_alignment = 64;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + slice_alignment - 1) / slice_alignment * slice_alignment;
}

// So many rows of f32, at least one, or fewer, that slices of as many, whatever a row has, lie one behind the other
// without gaps.
constexpr std::int64_t rows_without_gaps(std::int64_t rows) {
  constexpr std::int64_t step = slice_alignment / sizeof(float);
  return std::max<std::int64_t>(rows / step, 1) * step;
}

// Where the place of each is when they are packed one after the other, and behind them the end. Of all, or only of
// those that are kept.
enum class Packs : std::uint8_t { all, kept };
inline std::vector<std::uint64_t> packed(const Blocks& blocks, Packs which = Packs::all) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(blocks.size() + 1);
  std::uint64_t end = 0;
  for (const Block& block : blocks) {
    offsets.push_back(block.shares_place ? offsets.back() : end);
    end = offsets.back() + (which == Packs::all || block.kept ? aligned(block.bytes()) : 0);
  }
  offsets.push_back(end);
  return offsets;
}

}  // namespace plait::fused
