// Plait's own product of matrices, compiled once for each instruction set with Highway: a block of results stays in
// registers while the depth passes, and a block of b in the second-level cache while the rows do.

#include "fused/kernels/gemm.h"

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/kernels/gemm.cpp"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::gemm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lane = hn::ScalableTag<float>;

// Results in registers, beside a vector of b for each of their columns and an element of a.
constexpr int most_rows = 6;
constexpr int most_vectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr std::int64_t depth_at_once = 256;

// `rows` by `vectors`.
template <int rows, int vectors>
void multiply(const GemmTile& tile) {
  const Lane d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<Lane> sums[rows][vectors];
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < vectors; ++v)
      sums[row][v] = tile.adds ? hn::LoadU(d, tile.c + row * tile.c_pitch + v * lanes) : hn::Zero(d);
  for (std::int64_t at = 0; at < tile.depth; ++at) {
    hn::Vec<Lane> b[vectors];
    for (int v = 0; v < vectors; ++v) b[v] = hn::LoadU(d, tile.b + at * tile.b_pitch + v * lanes);
    for (int row = 0; row < rows; ++row) {
      const auto a = hn::Set(d, tile.a[row * tile.a_pitch + at]);
      for (int v = 0; v < vectors; ++v) sums[row][v] = hn::MulAdd(a, b[v], sums[row][v]);
    }
  }
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[row][v], d, tile.c + row * tile.c_pitch + v * lanes);
}

// All rows of as many columns as `vectors` have.
template <int vectors>
void multiply_rows(const GemmTile& tile, std::int64_t column) {
  GemmTile part = tile;
  part.b += column;
  for (std::int64_t row = 0; row < tile.rows;) {
    part.a = tile.a + row * tile.a_pitch;
    part.c = tile.c + row * tile.c_pitch + column;
    const bool many = tile.rows - row >= most_rows;
    many ? multiply<most_rows, vectors>(part) : multiply<1, vectors>(part);
    row += many ? most_rows : 1;
  }
}

// Fewer columns than a vector has: as a whole one, with zeros behind, whose results go nowhere.
void multiply_few(const GemmTile& tile) {
  constexpr std::size_t most_lanes = hn::MaxLanes(Lane());
  float b[depth_at_once * most_lanes] = {}, c[most_lanes];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lane()));
  for (std::int64_t at = 0; at < tile.depth; ++at)
    for (std::int64_t column = 0; column < tile.columns; ++column)
      b[at * lanes + column] = tile.b[at * tile.b_pitch + column];
  GemmTile row = tile;
  row.b = b;
  row.b_pitch = lanes;
  row.c = c;
  for (std::int64_t at = 0; at < tile.rows; ++at, row.a += tile.a_pitch) {
    float* to = tile.c + at * tile.c_pitch;
    for (std::int64_t column = 0; column < lanes; ++column)
      c[column] = tile.adds && column < tile.columns ? to[column] : 0;
    multiply<1, 1>(row);
    for (std::int64_t column = 0; column < tile.columns; ++column) to[column] = c[column];
  }
}

// Of a depth of at most depth_at_once.
void multiply_columns(const GemmTile& tile) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lane()));
  std::int64_t column = 0;
  for (; column + most_vectors * lanes <= tile.columns; column += most_vectors * lanes)
    multiply_rows<most_vectors>(tile, column);
  for (; column + lanes <= tile.columns; column += lanes) multiply_rows<1>(tile, column);
  if (column == tile.columns) return;
  GemmTile rest = tile;
  rest.b += column;
  rest.c += column;
  rest.columns -= column;
  multiply_few(rest);
}

// Without depth there may be no a and no b.
void fill_with_zeros(const GemmTile& tile) {
  for (std::int64_t row = 0; row < tile.rows; ++row)
    for (std::int64_t column = 0; column < tile.columns; ++column) tile.c[row * tile.c_pitch + column] = 0;
}

void multiply_all(const GemmTile& tile) {
  if (tile.depth == 0 && !tile.adds) return fill_with_zeros(tile);
  GemmTile part = tile;
  for (std::int64_t done = 0; done < tile.depth; done += part.depth) {
    part.depth = HWY_MIN(tile.depth - done, depth_at_once);
    part.a = tile.a + done;
    part.b = tile.b + done * tile.b_pitch;
    part.adds = tile.adds || done > 0;
    multiply_columns(part);
  }
}

void fill(GemmKernel& kernel) { kernel = multiply_all; }

}  // namespace plait::fused::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::fused {
namespace gemm {
namespace {

constexpr plait::detail::Compiled<void(GemmKernel&)> compiled_gemm[] = PLAIT_COMPILED(fill);

}  // namespace
}  // namespace gemm

GemmKernel own_gemm_kernel() {
  GemmKernel kernel = nullptr;
  plait::detail::best_of(gemm::compiled_gemm)(kernel);
  return kernel;
}

std::vector<TargetGemm> gemm_kernels_of_all_targets() {
  std::vector<TargetGemm> found;
  for (const auto& compiled : gemm::compiled_gemm) {
    if (!plait::detail::runs_here(compiled)) continue;
    GemmKernel kernel = nullptr;
    compiled.function(kernel);
    found.push_back({hwy::TargetName(compiled.target), kernel});
  }
  return found;
}

}  // namespace plait::fused

#endif  // HWY_ONCE
