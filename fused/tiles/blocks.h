// Matrices cut into blocks of about the same size, which are then the cells of boxes (tiles.h): a tile is a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

// At most so many rows and columns.
struct BlockShape {
  std::int64_t rows = 1, columns = 1;
};

// Of a matrix of f32, so that a kernel works at its best (measured, docs/fused.md) where the matrix is large, and there
// are still several blocks where it is not; and at most `most_bytes`, if a row's element is not longer.
BlockShape block_shape(std::int64_t rows, std::int64_t columns, std::size_t most_bytes);

// How many blocks, all of about the same length.
std::int64_t blocks_of(std::int64_t length, std::int64_t most);

// The elements of some blocks of `whole`, which is cut into blocks of at most `most`.
Range elements_of(const Range& blocks, const Range& whole, std::int64_t most);

}  // namespace plait::fused
