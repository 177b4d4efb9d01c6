// What a device computes for a fused operator (fused/): tiles, of which some make a slice of another rank's memory. A
// kernel's logical workgroups take the tiles in their order, each once; who ends the last tile of a slice tells the
// slice's owner by a flag. Behind the tiles the same kernel may add what has come from other ranks, or multiply it: for
// that alone workgroups wait, and only for so long.
//
// The scheme: Punniyamurthy, Hamidouche, Beckmann, "Optimizing Distributed ML Communication with Fused
// Computation-Collective Operations", SC '24.
//
// Plain numbers and addresses: kernels take these types as they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plait::tl {

// Rows and columns in the operator's own terms.
struct DeviceTile {
  std::byte* target = nullptr;  // of its first cell; memory that the device reaches
  std::uint64_t pitch = 0;      // bytes from one row of cells to the next
  std::int64_t row = 0, column = 0;
  std::int32_t rows = 0, columns = 0;
  std::uint32_t slice = 0;
  std::uint32_t matrix = 0;  // products of matrices: with which weights
};

// What a large device holds at once, where each takes its fourth part of a multiprocessor (an H100 has 132).
inline constexpr std::uint32_t device_workgroups = 132 * 4;

struct DeviceSlice {
  std::uint32_t* flag = nullptr;  // pinned memory of the processor's; nullptr: nobody is told
  std::uint32_t tiles = 0, unused = 0;
};

// Counters before those of the slices: the next tile, the workgroups that are through, and the next share.
inline constexpr std::size_t tile_counters = 3;

// Tiles may be parts of sums over ranks. Then each of a rank's own tiles is a share as well: who takes it waits until
// the parts of all ranks are there, adds them in the order of the ranks, and stores the sums into the outputs. Whoever
// has waited too long says so and leaves; then shares are missing, and somebody else adds them all: the bits are the
// same.
struct DeviceShares {
  const std::uint32_t* const* flags = nullptr;  // by source, its flags by slice of what is this rank's own
  std::byte* const* outputs = nullptr;
  std::uint32_t* missed = nullptr;     // pinned: set to the run where shares are missing
  std::uint64_t part_bytes = 0;        // from a source's part to the next one's
  std::uint64_t output_pitch = 0;      // from one row of cells to the next, in each output
  std::uint64_t most_wait_ns = 0;      // of a workgroup, in all
  std::uint32_t first = 0, count = 0;  // which tiles are shares; 0: nothing is added
  std::uint32_t first_slice = 0;       // of theirs
  std::uint32_t sources = 0, self = 0, output_count = 0;
};

// In the device's memory. Counters are zeros before a kernel and behind it.
struct DeviceTiles {
  const DeviceTile* tiles = nullptr;
  const DeviceSlice* slices = nullptr;
  std::uint32_t* counters = nullptr;  // tile_counters, and one a slice
  std::uint32_t count = 0;
  std::uint32_t run = 0;  // what flags are set to, once all of the slice's cells can be seen by whoever sees the flag
  DeviceShares shares = {};
};

// What rows of tables and weights are made of: f32; bf16, the upper half of an f32; i8, which a factor a row scales.
enum class DeviceRows : std::uint32_t { f32, bf16, i8 };

struct DeviceTable {
  const std::byte* rows = nullptr;
  const float* scales = nullptr;  // i8
  std::int64_t count = 0;
};

// Sums of rows of tables: a tile's rows are bags, its first column is the table. Cells are `columns` f32. Bag b of
// table t has the indices from offsets[t * batch + b] on.
struct DevicePooling {
  DeviceTiles tiles;
  const DeviceTable* tables = nullptr;  // in the device's memory
  const std::int64_t *indices = nullptr, *offsets = nullptr;
  const float* weights = nullptr;  // by index; nullptr: there are none
  std::int64_t batch = 0, columns = 0;
  DeviceRows type = DeviceRows::f32;
  std::uint32_t mean = 0;
  std::uint32_t vectors = 0;  // 1: all rows and cells begin at multiples of 16 bytes and are as long
  std::uint32_t unused = 0;
};

// Rows of a matrix times some vectors: a tile's rows are the matrix's. A vector's results are `pitch` apart. The only
// ones whose shares are added.
struct DeviceProducts {
  DeviceTiles tiles;
  const std::byte* weights = nullptr;
  const float* scales = nullptr;  // i8: by row
  const float* inputs = nullptr;  // vectors of `depth`, one after the other
  std::int64_t depth = 0;
  std::uint32_t columns = 1;  // vectors, 1 to most_device_vectors
  DeviceRows type = DeviceRows::f32;
  std::uint32_t vectors = 0;  // 1: rows and vectors begin at multiples of 16 bytes
  std::uint32_t unused = 0;
};
inline constexpr std::uint32_t most_device_vectors = 16;

// Products of matrices of f32, row after row: a tile is of `inputs` (each row `depth`) times the weights (depth x
// columns) that it names. A workgroup computes device_block_side rows and columns at a time.
inline constexpr std::int32_t device_block_side = 64;
struct DeviceMatrices {
  DeviceTiles tiles;
  const float* inputs = nullptr;
  const float* const* weights = nullptr;  // by number, in the device's memory
  std::int64_t depth = 0, columns = 0;
};

// Rows that come from a rank, slice by slice, and which rows of the output are made of them.
struct DeviceSource {
  const float* rows = nullptr;           // nullptr: they are this rank's own, which the call has
  const std::uint32_t* flags = nullptr;  // by slice; pinned memory of the processor's. nullptr: all are there
  std::int64_t first = 0, count = 0;
};

// Of a source: how many of its blocks are taken, and how many of its slices are known to have come, from the first on.
struct DeviceProgress {
  std::uint32_t taken = 0, seen = 0;
};

// A part of the workgroups takes tiles: rows of this rank's, which leave as they are. All others, and these when no
// tile is left, take blocks of the output, each as soon as the rows that it is made of are there: this rank's own at
// once, others' in the order in which they come. So no block that is taken waits; a workgroup that finds none waits,
// for so long in all. What is left then the next kernel of the same run takes, which has no tiles.
struct DeviceGather {
  DeviceTiles tiles;
  const float* inputs = nullptr;  // this rank's rows, `depth` each
  const float* weights = nullptr;
  float* output = nullptr;
  std::int64_t depth = 0, columns = 0;
  std::int64_t slice_rows = 1;            // of each slice of a source's but the last
  const DeviceSource* sources = nullptr;  // in the device's memory, in the order in which workgroups look
  DeviceProgress* progress = nullptr;     // likewise, of each; zeros before a run, and behind it
  std::uint32_t* missed = nullptr;        // pinned: at the end the run where blocks are left, else 0
  std::uint64_t most_wait_ns = 0;         // of a workgroup, in all
  std::uint64_t blocks = 0;               // of all sources
  std::uint32_t source_count = 0;
  std::uint32_t vectors = 0;  // 1: rows and places that they leave for begin at multiples of 16 bytes
};
// How many a source has, of device_block_side rows and columns; those of its first rows are the first.
constexpr std::int64_t device_blocks_along(std::int64_t length) {
  return (length + device_block_side - 1) / device_block_side;
}
// Of the workgroups one in so many takes tiles: as many as keep a link busy, so that the others compute meanwhile. Not
// measured.
inline constexpr std::uint32_t device_senders_one_in = 8;

// Whether lookups are right: offsets that do not descend and stay within `count`, indices that are rows.
struct DeviceLookups {
  const DeviceTable* tables = nullptr;  // in the device's memory
  const std::int64_t *indices = nullptr, *offsets = nullptr;
  std::uint32_t* wrong = nullptr;  // pinned: set to 1 where something is wrong, else left alone
  std::int64_t table_count = 0, batch = 0, count = 0;
};

}  // namespace plait::tl
