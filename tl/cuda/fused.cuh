// What fused operators compute (tl/device_tiles.h): sums of rows of tables, rows times vectors, products of matrices,
// tile by tile, straight into the memory of the ranks that own the results. Blocks take tiles from a counter, in the
// order in which the tiles lie: those for other ranks first. Who ends the last tile of a slice sets the slice's flag,
// which is the processor's, once all devices and processors can see the slice. Behind the tiles blocks may wait for
// other ranks' flags, until a time; else no thread waits for anything but its own block. tl/cuda/cuda_fused.h starts
// them.
#pragma once

#include <cuda_bf16.h>

#include "tl/device_tiles.h"

namespace fused {

using namespace plait::tl;

constexpr unsigned block_threads = 256, warp_threads = 32, all_lanes = 0xffffffffu;

// ---- Tiles, and the flags of slices ----

__device__ inline unsigned add_one(unsigned* counter) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

__device__ inline void tell(unsigned* flag, unsigned run) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(flag), "r"(run) : "memory");
}

__device__ inline bool is_told(const unsigned* flag, unsigned run) {
  unsigned told;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(told) : "l"(flag) : "memory");
  return told == run;
}

__device__ inline unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ inline bool wait_for(const unsigned* flag, unsigned run, unsigned long long until_ns) {
  while (!is_told(flag, run)) {
    if (now_ns() > until_ns) return false;
    __nanosleep(200);
  }
  return true;
}

// By all threads of a block, when the tile is computed. Another block's stores are seen through the counter.
__device__ inline void end_tile(const DeviceTiles& all, unsigned slice) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  const DeviceSlice& of = all.slices[slice];
  unsigned* done = all.counters + tile_counters + slice;
  if (add_one(done) + 1 != of.tiles) return;
  *done = 0;
  __threadfence_system();
  if (of.flag != nullptr) tell(of.flag, all.run);
}

// The last block leaves the counters as they were; whether this thread is the one that does it.
__device__ inline bool leave_tiles(const DeviceTiles& all) {
  if (threadIdx.x != 0 || add_one(all.counters + 1) + 1 != gridDim.x) return false;
  all.counters[0] = 0;
  all.counters[1] = 0;
  all.counters[2] = 0;
  return true;
}

// The next of what a counter gives out, for all threads of a block.
__device__ inline unsigned take_next(unsigned* counter) {
  __shared__ unsigned taken;
  if (threadIdx.x == 0) taken = atomicAdd(counter, 1u);
  __syncthreads();
  const unsigned at = taken;
  __syncthreads();
  return at;
}

// A thread looks at a source's flag. All tiles are taken by now, each by a block that runs: this rank's own come.
template <class Add>
__device__ void take_shares(const DeviceTiles& all, Add&& add) {
  const DeviceShares& shares = all.shares;
  if (shares.count == 0) return;
  const unsigned long long until_ns = now_ns() + shares.most_wait_ns;
  for (;;) {
    const unsigned at = take_next(all.counters + 2);
    if (at >= shares.count) return;
    const DeviceTile tile = all.tiles[shares.first + at];
    const bool came = threadIdx.x >= shares.sources ||
                      wait_for(shares.flags[threadIdx.x] + (tile.slice - shares.first_slice), all.run, until_ns);
    if (__syncthreads_and(came ? 1 : 0) == 0) {
      if (threadIdx.x == 0) tell(shares.missed, all.run);
      return;
    }
    add(tile);
  }
}

template <class Compute>
__device__ void take_tiles(const DeviceTiles& all, Compute&& compute) {
  for (;;) {
    const unsigned at = take_next(all.counters);
    if (at >= all.count) break;
    const DeviceTile tile = all.tiles[at];
    compute(tile);
    end_tile(all, tile.slice);
  }
}

// ---- Rows of numbers ----

// `numbers` of a row that one thread takes at once.
template <DeviceRows type>
struct RowNumbers;
template <>
struct RowNumbers<DeviceRows::f32> {
  using Number = float;
  __device__ static float value(float number) { return number; }
};
template <>
struct RowNumbers<DeviceRows::bf16> {
  using Number = unsigned short;
  __device__ static float value(unsigned short number) { return __uint_as_float(static_cast<unsigned>(number) << 16); }
};
template <>
struct RowNumbers<DeviceRows::i8> {
  using Number = signed char;
  __device__ static float value(signed char number) { return static_cast<float>(number); }
};

// Sixteen bytes at once, or one number.
template <DeviceRows type, bool vectors>
struct Piece {
  using Numbers = RowNumbers<type>;
  using Number = typename Numbers::Number;
  static constexpr int length = vectors ? 16 / static_cast<int>(sizeof(Number)) : 1;
  union {
    uint4 whole;
    Number numbers[16 / sizeof(Number)];
  };
  __device__ void load(const Number* from) {
    if constexpr (vectors)
      whole = __ldg(reinterpret_cast<const uint4*>(from));
    else
      numbers[0] = __ldg(from);
  }
  __device__ float value(int at) const { return Numbers::value(numbers[at]); }
};

template <bool vectors, int length>
__device__ void store_floats(float* to, const float* from) {
  if constexpr (vectors) {
#pragma unroll
    for (int at = 0; at < length; at += 4)
      *reinterpret_cast<float4*>(to + at) = make_float4(from[at], from[at + 1], from[at + 2], from[at + 3]);
  } else {
    *to = *from;
  }
}

// ---- Sums of rows ----

constexpr int rows_at_once = 4;

// Some columns of one bag: the rows in the order of the indices.
template <DeviceRows type, bool vectors>
__device__ void pool_columns(const DevicePooling& call, const DeviceTable& table, long long begin, long long end,
                             long long column, float* to) {
  using Of = Piece<type, vectors>;
  float sums[Of::length] = {};
  const typename Of::Number* rows = reinterpret_cast<const typename Of::Number*>(table.rows) + column;
  const auto add = [&](const Of& piece, long long at, long long index) {
    float factor = type == DeviceRows::i8 ? __ldg(table.scales + index) : 1.0f;
    if (call.weights != nullptr) factor *= __ldg(call.weights + at);
    const bool plain = type != DeviceRows::i8 && call.weights == nullptr;
#pragma unroll
    for (int i = 0; i < Of::length; ++i)
      sums[i] = plain ? sums[i] + piece.value(i) : fmaf(factor, piece.value(i), sums[i]);
  };
  long long at = begin;
  for (; at + rows_at_once <= end; at += rows_at_once) {
    long long index[rows_at_once];
    Of pieces[rows_at_once];
#pragma unroll
    for (int row = 0; row < rows_at_once; ++row) index[row] = __ldg(call.indices + at + row);
#pragma unroll
    for (int row = 0; row < rows_at_once; ++row) pieces[row].load(rows + index[row] * call.columns);
#pragma unroll
    for (int row = 0; row < rows_at_once; ++row) add(pieces[row], at + row, index[row]);
  }
  for (; at < end; ++at) {
    const long long index = __ldg(call.indices + at);
    Of piece;
    piece.load(rows + index * call.columns);
    add(piece, at, index);
  }
  if (call.mean != 0 && end > begin) {
    const float share = 1.0f / static_cast<float>(end - begin);  // as on the processor
#pragma unroll
    for (int i = 0; i < Of::length; ++i) sums[i] *= share;
  }
  store_floats<vectors, Of::length>(to + column, sums);
}

// As many threads a bag as it has pieces, a power of two of them; the block's bags side by side.
template <DeviceRows type, bool vectors>
__device__ void pool(const DevicePooling& call) {
  constexpr int length = Piece<type, vectors>::length;
  unsigned lanes = 1;
  while (lanes < block_threads && lanes * length < call.columns) lanes *= 2;
  const unsigned lane = threadIdx.x % lanes, first = threadIdx.x / lanes, step = block_threads / lanes;
  take_tiles(call.tiles, [&](const DeviceTile& tile) {
    const DeviceTable table = call.tables[tile.column];
    const std::int64_t* offsets = call.offsets + tile.column * call.batch + tile.row;
    for (unsigned bag = first; bag < static_cast<unsigned>(tile.rows); bag += step) {
      const long long begin = __ldg(offsets + bag), end = __ldg(offsets + bag + 1);
      float* to = reinterpret_cast<float*>(tile.target + bag * tile.pitch);
      for (long long column = lane * length; column < call.columns; column += lanes * length)
        pool_columns<type, vectors>(call, table, begin, end, column, to);
    }
  });
  leave_tiles(call.tiles);
}

// ---- Whether lookups are right ----

// A warp a bag.
__device__ inline bool is_right(const DeviceLookups& call, long long bag, unsigned lane) {
  const long long begin = call.offsets[bag], end = call.offsets[bag + 1];
  if (begin < 0 || end < begin || end > call.count) return false;
  const long long rows = call.tables[bag / call.batch].count;
  bool right = true;
  for (long long at = begin + lane; at < end; at += warp_threads)
    right = right && call.indices[at] >= 0 && call.indices[at] < rows;
  return right;
}

// ---- Rows times vectors ----

// A row by a warp; of its sums the first lane's are whole.
template <DeviceRows type, bool vectors, int columns>
__device__ void multiply_row(const DeviceProducts& call, long long row, unsigned lane, float* sums) {
  using Of = Piece<type, vectors>;
  const typename Of::Number* weights = reinterpret_cast<const typename Of::Number*>(call.weights) + row * call.depth;
  constexpr int step = warp_threads * Of::length;
#pragma unroll 2
  for (long long at = lane * Of::length; at < call.depth; at += step) {
    Of piece;
    piece.load(weights + at);
#pragma unroll
    for (int column = 0; column < columns; ++column) {
      if (column >= call.columns) break;
      const float* inputs = call.inputs + column * call.depth + at;
      if constexpr (vectors) {
#pragma unroll
        for (int i = 0; i < Of::length; i += 4) {
          const float4 four = __ldg(reinterpret_cast<const float4*>(inputs + i));
          sums[column] = fmaf(piece.value(i), four.x, sums[column]);
          sums[column] = fmaf(piece.value(i + 1), four.y, sums[column]);
          sums[column] = fmaf(piece.value(i + 2), four.z, sums[column]);
          sums[column] = fmaf(piece.value(i + 3), four.w, sums[column]);
        }
      } else {
        sums[column] = fmaf(piece.value(0), __ldg(inputs), sums[column]);
      }
    }
  }
#pragma unroll
  for (int column = 0; column < columns; ++column)
    for (unsigned away = warp_threads / 2; away > 0; away /= 2)
      sums[column] += __shfl_down_sync(all_lanes, sums[column], away);
}

template <DeviceRows type, bool vectors, int columns>
__device__ void multiply_rows(const DeviceProducts& call) {
  const unsigned lane = threadIdx.x % warp_threads, warp = threadIdx.x / warp_threads;
  take_tiles(call.tiles, [&](const DeviceTile& tile) {
    for (unsigned at = warp; at < static_cast<unsigned>(tile.rows); at += block_threads / warp_threads) {
      float sums[columns] = {};
      multiply_row<type, vectors, columns>(call, tile.row + at, lane, sums);
      if (lane != 0) continue;
      const float factor = type == DeviceRows::i8 ? call.scales[tile.row + at] : 1.0f;
#pragma unroll
      for (int column = 0; column < columns; ++column)
        if (column < call.columns)
          reinterpret_cast<float*>(tile.target + column * tile.pitch)[at] =
              type == DeviceRows::i8 ? factor * sums[column] : sums[column];
    }
  });
}

// The sums of a share's cells; neighbours take neighbouring rows.
__device__ inline void add_rows(const DeviceShares& shares, const DeviceTile& tile, unsigned columns) {
  const std::byte* first = tile.target - shares.self * shares.part_bytes;
  const unsigned rows = static_cast<unsigned>(tile.rows), cells = rows * columns;
  for (unsigned at = threadIdx.x; at < cells; at += block_threads) {
    const unsigned column = at / rows, row = at % rows;
    const std::byte* part = first + column * tile.pitch + row * sizeof(float);
    float sum = *reinterpret_cast<const float*>(part);
#pragma unroll 4
    for (unsigned source = 1; source < shares.sources; ++source)
      sum += *reinterpret_cast<const float*>(part + source * shares.part_bytes);
    const unsigned long long place = column * shares.output_pitch + (tile.row + row) * sizeof(float);
    for (unsigned output = 0; output < shares.output_count; ++output)
      *reinterpret_cast<float*>(shares.outputs[output] + place) = sum;
  }
}

template <DeviceRows type, bool vectors>
__device__ void multiply_by_columns(const DeviceProducts& call) {
  if (call.columns == 1)
    multiply_rows<type, vectors, 1>(call);
  else if (call.columns <= 4)
    multiply_rows<type, vectors, 4>(call);
  else
    multiply_rows<type, vectors, static_cast<int>(most_device_vectors)>(call);
}

template <DeviceRows type>
__device__ void multiply_and_add(const DeviceProducts& call) {
  if (call.vectors != 0)
    multiply_by_columns<type, true>(call);
  else
    multiply_by_columns<type, false>(call);
  take_shares(call.tiles, [&](const DeviceTile& tile) { add_rows(call.tiles.shares, tile, call.columns); });
  leave_tiles(call.tiles);
}

// ---- Products of matrices ----

// A block computes 64 x 64 cells at a time, a thread 4 x 4 of them, from pieces that are 16 deep.
constexpr int side = device_block_side, deep = 16, thread_side = 4;

struct Panels {
  float inputs[deep][side + 1], weights[deep][side + 4];
};

struct Patch {
  long long column;   // of the whole product
  int rows, columns;  // at most `side`
};

struct Factors {
  const float *inputs, *weights;  // from the patch's first row, and of all columns
  long long depth, columns;
};

// `settled`: nobody writes the inputs while the kernel runs.
template <bool settled>
__device__ void load_panels(const Factors& of, const Patch& patch, long long from, Panels& panels) {
  for (int at = threadIdx.x; at < deep * side; at += block_threads) {
    const int row = at / deep, depth = at % deep;
    const bool within = row < patch.rows && from + depth < of.depth;
    const float* input = of.inputs + row * of.depth + from + depth;
    panels.inputs[depth][row] = !within ? 0.0f : settled ? __ldg(input) : *input;
  }
  for (int at = threadIdx.x; at < deep * side; at += block_threads) {
    const int depth = at / side, column = at % side;
    const bool within = column < patch.columns && from + depth < of.depth;
    panels.weights[depth][column] =
        within ? __ldg(of.weights + (from + depth) * of.columns + patch.column + column) : 0.0f;
  }
}

template <bool settled>
__device__ void multiply_patch(const Factors& of, const Patch& patch, std::byte* target, unsigned long long pitch,
                               Panels& panels) {
  const int first_row = static_cast<int>(threadIdx.x) / (side / thread_side) * thread_side;
  const int first_column = static_cast<int>(threadIdx.x) % (side / thread_side) * thread_side;
  float sums[thread_side][thread_side] = {};
  for (long long from = 0; from < of.depth; from += deep) {
    load_panels<settled>(of, patch, from, panels);
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < deep; ++depth) {
      float left[thread_side], right[thread_side];
#pragma unroll
      for (int i = 0; i < thread_side; ++i) left[i] = panels.inputs[depth][first_row + i];
#pragma unroll
      for (int i = 0; i < thread_side; ++i) right[i] = panels.weights[depth][first_column + i];
#pragma unroll
      for (int i = 0; i < thread_side; ++i)
#pragma unroll
        for (int j = 0; j < thread_side; ++j) sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < thread_side; ++i)
#pragma unroll
    for (int j = 0; j < thread_side; ++j)
      if (first_row + i < patch.rows && first_column + j < patch.columns)
        reinterpret_cast<float*>(target + (first_row + i) * pitch)[first_column + j] = sums[i][j];
}

}  // namespace fused

#define PLAIT_POOL(name, type)                                       \
  extern "C" __global__ void __launch_bounds__(fused::block_threads) \
      plait_pool_##name(const fused::DevicePooling call) {           \
    if (call.vectors != 0)                                           \
      fused::pool<fused::DeviceRows::type, true>(call);              \
    else                                                             \
      fused::pool<fused::DeviceRows::type, false>(call);             \
  }                                                                  \
  extern "C" __global__ void __launch_bounds__(fused::block_threads) \
      plait_multiply_##name(const fused::DeviceProducts call) {      \
    fused::multiply_and_add<fused::DeviceRows::type>(call);          \
  }
PLAIT_POOL(f32, f32)
PLAIT_POOL(bf16, bf16)
PLAIT_POOL(i8, i8)
#undef PLAIT_POOL

extern "C" __global__ void __launch_bounds__(fused::block_threads)
    plait_multiply_matrices(const fused::DeviceMatrices call) {
  __shared__ fused::Panels panels;
  fused::take_tiles(call.tiles, [&](const fused::DeviceTile& tile) {
    const float* weights = call.weights[tile.matrix];
    for (int row = 0; row < tile.rows; row += fused::side)
      for (int column = 0; column < tile.columns; column += fused::side)
        fused::multiply_patch<true>(
            {call.inputs + (tile.row + row) * call.depth, weights, call.depth, call.columns},
            {tile.column + column, min(fused::side, tile.rows - row), min(fused::side, tile.columns - column)},
            tile.target + row * tile.pitch + column * sizeof(float), tile.pitch, panels);
  });
  fused::leave_tiles(call.tiles);
}

extern "C" __global__ void __launch_bounds__(fused::block_threads)
    plait_check_lookups(const fused::DeviceLookups call) {
  const unsigned lane = threadIdx.x % fused::warp_threads;
  const long long warps = static_cast<long long>(gridDim.x) * (fused::block_threads / fused::warp_threads);
  const long long first =
      (static_cast<long long>(blockIdx.x) * fused::block_threads + threadIdx.x) / fused::warp_threads;
  for (long long bag = first; bag < call.table_count * call.batch; bag += warps)
    if (!fused::is_right(call, bag, lane)) *call.wrong = 1;
}
