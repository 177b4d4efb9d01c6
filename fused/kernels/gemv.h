// Rows of a matrix times some vectors: the computation of a decoding step, for the processor at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fused/kernels/pooling.h"
#include "fused/layer.h"

namespace plait::fused {

inline constexpr int most_columns = 16;
// Rows that the kernels take at once at most: pieces of a matrix are best multiples of it, as what is left at their
// ends takes longer.
inline constexpr std::int64_t gemv_block_rows = 8;

// Some rows of the weights, one after the other, and what they are multiplied by.
struct WeightRows {
  const std::byte* weights = nullptr;  // `rows` times `depth` elements
  const float* scales = nullptr;       // i8: by row
  std::int64_t rows = 0, depth = 0;
  const float* inputs = nullptr;  // `columns` vectors of `depth` f32, one after the other
  int columns = 1;                // 1 to most_columns
  std::byte* results = nullptr;   // of each vector `rows` f32
  std::ptrdiff_t pitch = 0;       // bytes from one vector's results to the next one's
};

// Products and sums in f32. A row's result depends on the row, the vectors and `columns` alone, but for the last bits
// of those at the end that are fewer than the kernel takes at once. Writes the results and nothing else. No number and
// no address needs alignment. The last bits may differ between processors.
using GemvKernel = void (*)(const WeightRows& rows);

// That of this processor.
GemvKernel gemv_kernel(RowType type);

// Those of every instruction set that this processor has, for the tests.
struct TargetGemv {
  std::string_view target;
  GemvKernel kernel;
};
std::vector<TargetGemv> gemv_kernels_of_all_targets(RowType type);

}  // namespace plait::fused
