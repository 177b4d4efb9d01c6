// Sums of rows of a table, one a bag: the computation of an embedding bag, for the processor at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

// What a table's rows are made of: f32; bf16, the upper half of an f32; i8, which a factor a row scales.
enum class RowType : std::uint8_t { f32, bf16, i8 };
std::string_view name(RowType type);
std::size_t bytes_of(RowType type);

// Some bags of one table, one after the other.
struct Bags {
  const std::byte* table = nullptr;  // rows of `columns` elements, one after the other
  const float* scales = nullptr;     // i8: by row
  std::int64_t columns = 0;
  const std::int64_t* indices = nullptr;  // of rows: those of a bag follow each other
  const float* weights = nullptr;         // by index; only where the kernel takes them
  const std::int64_t* offsets = nullptr;  // where each bag begins in the indices, and where the last one ends
  std::int64_t bags = 0;
  // Indices up to here are rows of this table, which are likely to be asked for next, and are fetched from memory
  // before the last bag ends; less than where it ends: none are known.
  std::int64_t next_end = 0;
  std::byte* sums = nullptr;  // of `columns` f32 for each bag
  std::ptrdiff_t pitch = 0;   // bytes from one sum to the next
  bool mean = false;          // divided by the number of the bag's rows; of an empty bag it is 0
};

// Sums in f32, in the order of the indices; rows weighted by nothing, or by `weights`. Writes the sums and nothing
// else. The columns' number and addresses need no alignment. The last bits may differ between processors.
using PoolingKernel = void (*)(const Bags& bags);

namespace detail {
struct PoolingKernels {
  PoolingKernel of[3][2];  // by type; weighted or not
};
}  // namespace detail

// That of this processor.
PoolingKernel pooling_kernel(RowType type, bool weighted);

// Those of every instruction set that this processor has, for the tests.
struct TargetPooling {
  std::string_view target;
  PoolingKernel kernel;
};
std::vector<TargetPooling> pooling_kernels_of_all_targets(RowType type, bool weighted);

}  // namespace plait::fused
