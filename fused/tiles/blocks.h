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

// Of a matrix of f32, so that a kernel works at its best where the matrix is large: the wider a block is, the less does
// it count that each is packed anew. And so that there are several blocks, which others can follow.
struct BlockRequest {
  std::int64_t rows = 1, columns = 1;  // of the matrix
  std::int64_t enough = 2;             // blocks, if they do not become too small to be worth a call
  std::size_t most_bytes = ~std::size_t{0};
};
BlockShape block_shape(const BlockRequest& request);

// How many blocks, all of about the same length.
std::int64_t blocks_of(std::int64_t length, std::int64_t most);

// The elements of some blocks of `whole`, which is cut into blocks of at most `most`.
Range elements_of(const Range& blocks, const Range& whole, std::int64_t most);

}  // namespace plait::fused
