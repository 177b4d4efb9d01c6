// What a fused operator computes, cut for its way to other ranks. The output of every rank is a matrix; a rank computes
// some columns of some rows of each. That part of one owner's output is cut into slices, which leave at once, and these
// into tiles, which a worker computes at once. All of it follows from the shape alone, so that producer and owner cut
// alike without a word; threads, a device and a simulation go by the same description.
//
// Fused operators with tiles, slices and a communication-aware order: Punniyamurthy, Hamidouche, Beckmann, "Optimizing
// Distributed ML Communication with Fused Computation-Collective Operations", SC '24.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t length() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Rows and columns in the operator's own units: samples and tables, say.
struct Box {
  Range rows, columns;
  std::int64_t cells() const { return rows.length() * columns.length(); }
  bool operator==(const Box&) const = default;
};

struct Slice {
  Box box;
  std::uint32_t first_tile = 0, tiles = 0;
};

struct Tile {
  Box box;
  std::uint32_t slice = 0;
};

// What one rank computes for one owner; slices, and the tiles of each, in the order in which workers take them.
struct Pane {
  std::vector<Slice> slices;
  std::vector<Tile> tiles;
};

// How a pane is cut. All are at least 1.
struct Grain {
  std::int64_t slice_rows = 1, slice_columns = 1;
  std::int64_t tile_rows = 1;  // of one column
};

// So that slices are about `slice_bytes` long, and tiles `tile_bytes`, where a cell has `cell_bytes`: as many rows of a
// column as make a slice, or several columns where all rows make less; all pieces of about the same size.
struct GrainRequest {
  std::size_t cell_bytes = 1, slice_bytes = 1, tile_bytes = 1;
};
Grain grain_of(const Box& box, const GrainRequest& request);

// The slices of a box column by column, each column from its first row on. Nothing of a box without cells.
Pane cut(const Box& box, const Grain& grain);

// Which of `rows` are the rank's: consecutive ones, the same number on all ranks but for one more on the first ones.
Range share_of(std::int64_t rows, int ranks, int rank);

// The owners of what a rank computes, in the order in which it computes that: ranks of other nodes first, then others
// of its node, then itself. Of each kind they come in strides from the rank on, all ranks' the same: so not all send to
// the same one, and near and far ones come by turns, which loads a network evenly. `node_of`: by rank.
std::vector<int> communication_order(std::span<const int> node_of, int rank);

// The sources of what comes to a rank, in the order in which it is likely to be there: its own first, then that of its
// node's ranks, then others', each kind in the order in which their communication_order() sends it.
std::vector<int> arrival_order(std::span<const int> node_of, int rank);

// A tile's place in the order in which a rank computes.
struct Turn {
  std::int32_t owner = 0;
  std::uint32_t tile = 0;  // in the owner's pane
};
using Lineup = std::vector<Turn>;

// The tiles for some owners, column by column, and each column's in the order of `owners`: what a column is computed
// from (a table, a block of a matrix) is fetched from memory once for all of them. `panes`: by owner.
Lineup line_up(std::span<const Pane* const> panes, std::span<const int> owners);

// As it lies in the output: from rank 0 on. For comparison.
std::vector<int> plain_order(int ranks);

}  // namespace plait::fused
