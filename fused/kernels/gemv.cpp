// Rows times vectors, compiled once for each instruction set with Highway. Weights are read from memory once, row after
// row, and fetched ahead; a block of rows times some of the vectors is summed up in registers. Where registers do not
// hold all vectors, the block is read again, from the second-level cache.

#include "fused/kernels/gemv.h"

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/kernels/gemv.cpp"
#include "hwy/foreach_target.h"

#include "fused/kernels/rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::gemv::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using rows::HWY_NAMESPACE::Bf16;
using rows::HWY_NAMESPACE::F32;
using rows::HWY_NAMESPACE::Floats;
using rows::HWY_NAMESPACE::I8;

constexpr bool has_many_registers = HWY_TARGET == HWY_AVX3;
// Vectors that a block of rows is multiplied by at once.
constexpr int most_at_once = has_many_registers ? 6 : 4;
// Sums that are under way at once, so that none waits for the one before it.
constexpr int least_sums = 8;
constexpr std::size_t cache_line = 64;
// How far ahead of its use a row is fetched from memory, in bytes. Measured by perf/fused_gemv_loop.
constexpr std::size_t bytes_ahead = 4096;

// Rows of a block: a vector's elements are loaded once for all of them, and memory is read in as many places at once.
// As many as registers hold.
constexpr int rows_of_block(int columns) {
  if (columns <= 2) return has_many_registers ? 8 : 4;
  return has_many_registers ? 4 : 2;
}

struct Block {
  std::int64_t first_row;
  int first_column;
  bool fetches;  // what comes behind it in memory
};

// `from` to before `to` of each row: whole steps of vectors. What is `ahead` bytes behind each is fetched.
template <class Row, int rows, int columns, int chains, int unroll>
HWY_INLINE void add_products(const std::byte* const* weights, const float* const* inputs, std::size_t from,
                             std::size_t to, const std::ptrdiff_t ahead,
                             hn::Vec<Floats> (&sums)[chains][rows][columns]) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d), step = lanes * unroll;
  for (std::size_t at = from; at < to; at += step) {
    if (ahead != 0)
      for (int row = 0; row < rows; ++row)
        for (std::size_t byte = 0; byte < step * Row::bytes; byte += cache_line)
          __builtin_prefetch(weights[row] + at * Row::bytes + byte + ahead, 0, 2);
    for (int part = 0; part < unroll; ++part) {
      const std::size_t place = at + static_cast<std::size_t>(part) * lanes;
      hn::Vec<Floats> weight[rows];
      for (int row = 0; row < rows; ++row) weight[row] = Row::load(d, weights[row] + place * Row::bytes);
      for (int column = 0; column < columns; ++column) {
        const auto input = hn::LoadU(d, inputs[column] + place);
        for (int row = 0; row < rows; ++row)
          sums[part % chains][row][column] = hn::MulAdd(weight[row], input, sums[part % chains][row][column]);
      }
    }
  }
}

// Some rows times some vectors.
template <class Row, int rows, int columns>
void multiply(const WeightRows& all, const Block& block) {
  const Floats d;
  constexpr int chains = HWY_MAX(least_sums / (rows * columns), 1);
  constexpr int line_vectors = static_cast<int>(cache_line / (hn::MaxLanes(Floats()) * Row::bytes));
  constexpr int unroll = (HWY_MAX(chains, line_vectors) + chains - 1) / chains * chains;
  const std::size_t depth = static_cast<std::size_t>(all.depth), row_bytes = depth * Row::bytes;
  const std::byte* weights[rows];
  const float* inputs[columns];
  for (int row = 0; row < rows; ++row)
    weights[row] = all.weights + static_cast<std::size_t>(block.first_row + row) * row_bytes;
  for (int column = 0; column < columns; ++column)
    inputs[column] = all.inputs + static_cast<std::size_t>(block.first_column + column) * depth;
  hn::Vec<Floats> sums[chains][rows][columns];
  for (auto& chain : sums)
    for (auto& row : chain)
      for (auto& sum : row) sum = hn::Zero(d);

  const std::size_t step = hn::Lanes(d) * static_cast<std::size_t>(unroll), whole = depth / step * step;
  // Rows that are longer than what is fetched ahead: the same row, and near its end the next block's, which lies behind
  // the block's other rows. Shorter ones: a row of a later block.
  const std::size_t far = HWY_MIN(bytes_ahead / Row::bytes / step * step, whole);
  const std::size_t blocks = HWY_MAX(bytes_ahead / HWY_MAX(row_bytes, 1), 1);
  const std::size_t to_later = (blocks * rows - 1) * row_bytes;
  const auto ahead = static_cast<std::ptrdiff_t>(far * Row::bytes);
  const auto ahead_at_end = static_cast<std::ptrdiff_t>(to_later) + ahead;
  add_products<Row, rows, columns, chains, unroll>(weights, inputs, 0, whole - far, block.fetches ? ahead : 0, sums);
  add_products<Row, rows, columns, chains, unroll>(weights, inputs, whole - far, whole,
                                                   block.fetches ? ahead_at_end : 0, sums);
  for (int row = 0; row < rows; ++row) {
    const float scale = std::is_same_v<Row, I8> ? all.scales[block.first_row + row] : 1.0f;
    for (int column = 0; column < columns; ++column) {
      auto sum = sums[0][row][column];
      for (int chain = 1; chain < chains; ++chain) sum = hn::Add(sum, sums[chain][row][column]);
      float result = hn::GetLane(hn::SumOfLanes(d, sum));
      for (std::size_t at = whole; at < depth; ++at)
        result += Row::element(weights[row] + at * Row::bytes) * inputs[column][at];
      reinterpret_cast<float*>(all.results + (block.first_column + column) * all.pitch)[block.first_row + row] =
          result * scale;
    }
  }
}

template <class Row, int columns>
void multiply_some(const WeightRows& all, const Block& block, int rows) {
  if constexpr (columns <= 2 && has_many_registers)
    if (rows == 8) return multiply<Row, 8, columns>(all, block);
  if (rows == 4) return multiply<Row, 4, columns>(all, block);
  if (rows == 2) return multiply<Row, 2, columns>(all, block);
  return multiply<Row, 1, columns>(all, block);
}

template <class Row>
void multiply_block(const WeightRows& all, const Block& block, int rows, int columns) {
  if constexpr (has_many_registers) {
    if (columns == 6) return multiply_some<Row, 6>(all, block, rows);
    if (columns == 5) return multiply_some<Row, 5>(all, block, rows);
  }
  if (columns == 4) return multiply_some<Row, 4>(all, block, rows);
  if (columns == 3) return multiply_some<Row, 3>(all, block, rows);
  if (columns == 2) return multiply_some<Row, 2>(all, block, rows);
  return multiply_some<Row, 1>(all, block, rows);
}

template <class Row>
void multiply_all(const WeightRows& all) {
  const int passes = (all.columns + most_at_once - 1) / most_at_once;
  const int fewest = all.columns / passes, more = all.columns % passes;  // vectors of a pass
  std::int64_t rows = rows_of_block(fewest);
  std::int64_t row = 0;
  while (row < all.rows) {
    while (row + rows > all.rows) rows /= 2;
    for (int pass = 0, column = 0; pass < passes; ++pass) {
      const int columns = fewest + (pass < more ? 1 : 0);
      multiply_block<Row>(all, {.first_row = row, .first_column = column, .fetches = pass == 0}, static_cast<int>(rows),
                          columns);
      column += columns;
    }
    row += rows;
  }
}

void fill(GemvKernel (&kernels)[3]) {
  kernels[0] = multiply_all<F32>;
  kernels[1] = multiply_all<Bf16>;
  kernels[2] = multiply_all<I8>;
}

}  // namespace plait::fused::gemv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::fused {
namespace gemv {
namespace {

constexpr plait::detail::Compiled<void(GemvKernel (&)[3])> compiled_gemv[] = PLAIT_COMPILED(fill);

}  // namespace
}  // namespace gemv

GemvKernel gemv_kernel(RowType type) {
  GemvKernel kernels[3];
  plait::detail::best_of(gemv::compiled_gemv)(kernels);
  return kernels[static_cast<std::size_t>(type)];
}

std::vector<TargetGemv> gemv_kernels_of_all_targets(RowType type) {
  std::vector<TargetGemv> found;
  for (const auto& compiled : gemv::compiled_gemv) {
    if (!plait::detail::runs_here(compiled)) continue;
    GemvKernel kernels[3];
    compiled.function(kernels);
    found.push_back({hwy::TargetName(compiled.target), kernels[static_cast<std::size_t>(type)]});
  }
  return found;
}

}  // namespace plait::fused

#endif  // HWY_ONCE
