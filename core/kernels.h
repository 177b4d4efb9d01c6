// Internal to core: the tables behind reduce_kernel().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/element.h"
#include "core/reduce_kernel.h"

namespace plait::detail {

inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::count_);
inline constexpr std::size_t element_count = static_cast<std::size_t>(Element::count_);

// A kernel for each (operator, element); nullptr where MPI defines no such combination. A plain
// array, because the code that fills it is compiled once for each instruction set and must not share
// an inline function of the standard library with code for another.
template <class Kernel>
struct TableOf {
  Kernel kernels[op_count][element_count] = {};

  Kernel& at(Op op, Element element) {
    return kernels[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
  }
  Kernel at(Op op, Element element) const {
    return kernels[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
  }
};

using KernelTable = TableOf<ReduceKernel>;

// The kernels of many operands: nullptr also where no vector unit computes with the type. They do
// not order streamed stores; end_streaming() does.
struct ManyKernels : TableOf<ManyKernel> {
  ManyKernel copy = nullptr;  // of bytes: `elements` counts them, and there is one source
};

// Fills in the combinations computed by plain loops. The vector kernels come second and replace
// what they do better.
void add_scalar_kernels(KernelTable& table);

// The kernels for this processor. The choice is made once; thread-safe.
const KernelTable& kernel_table();
const ManyKernels& many_kernels();

// The kernels of one of Highway's targets, which this processor has.
ManyKernels many_kernels_of(std::int64_t target);

// Whoever sees a later release store of this thread sees what it streamed before.
void end_streaming();

// The same for each instruction set that this processor has, for the tests: all of them must give
// the same bits.
struct TargetKernels {
  std::string_view target;  // "AVX2"
  KernelTable table;
  ManyKernels many;
};
std::vector<TargetKernels> kernel_tables_of_all_targets();

}  // namespace plait::detail
