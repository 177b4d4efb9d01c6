// Gradients of bags added to the rows that the bags were made of: the computation of an embedding bag's backward
// direction, for the processor at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fused/kernels/pooling.h"
#include "fused/layer.h"

namespace plait::fused {

// Some bags of one table, one after the other, and the gradients of their sums. Of each row some columns, or all.
struct BagGradients {
  std::byte* table = nullptr;     // rows of `row_elements` elements, one after the other, from the first such column on
  std::int64_t row_elements = 0;  // from a row to the next
  std::int64_t columns = 0;
  const std::int64_t* indices = nullptr;  // of rows: those of a bag follow each other
  const float* weights = nullptr;         // by index; only where the kernel takes them
  const std::int64_t* offsets = nullptr;  // where each bag begins in the indices, and where the last one ends
  std::int64_t bags = 0;
  // Indices up to here are rows of this table, which are likely to come next, and are fetched from memory before the
  // last bag ends; less than where it ends: none are known.
  std::int64_t next_end = 0;
  const std::byte* gradients = nullptr;  // of `columns` f32 for each bag
  std::ptrdiff_t pitch = 0;              // bytes from one bag's to the next one's
  float factor = 1;                      // of every gradient
  bool mean = false;                     // the bag was divided by the number of its rows, and its gradient is
};

// table[index] += factor * (weight of the index, or 1 / the bag's rows, or 1) * the bag's gradient, for one index after
// the other: a row that comes twice is added to twice. In f32, and for bf16 rounded to the nearest, ties to even, each
// time. Writes the columns of these rows and nothing else. The columns' number and addresses need no alignment. The
// last bits may differ between processors.
using ScatterKernel = void (*)(const BagGradients& bags);

namespace detail {
struct ScatterKernels {
  ScatterKernel of[2][2];  // by type; weighted or not
};
}  // namespace detail

// That of this processor. Precondition: the type is not i8, whose rows cannot be added to.
ScatterKernel scatter_kernel(RowType type, bool weighted);

// Those of every instruction set that this processor has, for the tests.
struct TargetScatter {
  std::string_view target;
  ScatterKernel kernel;
};
std::vector<TargetScatter> scatter_kernels_of_all_targets(RowType type, bool weighted);

}  // namespace plait::fused
