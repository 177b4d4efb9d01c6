// Internal to core: the vector kernels of ordered sums. They give the bits of ordered_sum.h, and leave what is not
// plain (infinities, NaNs, numbers so small or large that a step on the way would be beyond the format) to the scalar
// code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/reduce_kernel.h"

namespace plait::detail {

// Reals [begin, end) of all arrays.
using SumRange = void (*)(const ManyOperands& of, std::size_t begin, std::size_t end);
using SumKernel = void (*)(const ManyOperands& of, std::size_t reals, SumRange otherwise);
inline constexpr std::size_t most_vector_operands = 1024;  // with fewer, what sums round off is summed exactly

// As WideSum has them.
using KeysKernel = void (*)(void* keys, const void* operands, std::size_t count);
using StepsKernel = void (*)(void* to, const void* from, const void* largest_keys, std::size_t count);
using StepsKernelBeside = void (*)(void* to, const void* from, const void* largest_keys, std::size_t count,
                                   StepsKernel otherwise);

template <class Real>
struct OrderedKernelsOf {
  SumKernel sum = nullptr;
  // Of steps as wide as the type.
  KeysKernel make_keys = nullptr;
  StepsKernelBeside cut = nullptr, round = nullptr;
};

struct OrderedKernels {
  OrderedKernelsOf<float> f32;
  OrderedKernelsOf<double> f64;
};

// For this processor; chosen once, thread-safe. Only while the processor rounds to the nearest.
const OrderedKernels& ordered_kernels();
bool rounds_to_nearest();

// Of each instruction set that this processor has, for the tests.
std::vector<OrderedKernels> ordered_kernels_of_all_targets();

}  // namespace plait::detail
