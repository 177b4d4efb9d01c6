// What a device computes for a fused operator (fused/): tiles, of which some make a slice of another rank's memory. A
// kernel's logical workgroups take the tiles in their order, each once; who ends the last tile of a slice tells the
// slice's owner by a flag. No workgroup waits for another one, of its own rank or of others.
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

// Counters before those of the slices: the next tile, and the workgroups that are through.
inline constexpr std::size_t tile_counters = 2;

// In the device's memory. Counters are zeros before a kernel and behind it.
struct DeviceTiles {
  const DeviceTile* tiles = nullptr;
  const DeviceSlice* slices = nullptr;
  std::uint32_t* counters = nullptr;  // tile_counters, and one a slice
  std::uint32_t count = 0;
  std::uint32_t run = 0;  // what flags are set to, once all of the slice's cells can be seen by whoever sees the flag
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

// Rows of a matrix times some vectors: a tile's rows are the matrix's. A vector's results are `pitch` apart.
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

// Whether lookups are right: offsets that do not descend and stay within `count`, indices that are rows.
struct DeviceLookups {
  const DeviceTable* tables = nullptr;  // in the device's memory
  const std::int64_t *indices = nullptr, *offsets = nullptr;
  std::uint32_t* wrong = nullptr;  // pinned: set to 1 where something is wrong, else left alone
  std::int64_t table_count = 0, batch = 0, count = 0;
};

}  // namespace plait::tl
