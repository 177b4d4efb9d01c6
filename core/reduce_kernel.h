// What a kernel that combines elements does.
#pragma once

#include <cstddef>

namespace plait {

// result[i] = left[i] op right[i] for i in [0, count). `result` may be the same address as `left`
// or `right`, and must not overlap them otherwise. No alignment is required. Only `result` is
// written, and of it only the bytes of values: padding (in pairs and in x87's long double) keeps
// what it held.
//
// The same operands give the same bits on every processor of an architecture, wherever in the array
// they stand:
// - integer sums and products wrap around;
// - floating max is `left > right ? left : right`, min the same with <: the right operand where one
//   is a NaN or where both are zeros;
// - complex products are the plain formula without fused operations or C99's rescue of infinities;
// - land, lor and lxor take any non-zero value as true and give 0 or 1;
// - maxloc and minloc give one of the two pairs, whole: of equal values the one with the smaller
//   index, and the right one where a value is a NaN;
// - not promised: which NaN a sum or product of two NaNs is.
using ReduceKernel = void (*)(void* result, const void* left, const void* right, std::size_t count);

// The arrays of one reduce_many().
struct ManyOperands {
  std::byte* const* results;
  std::size_t result_count;  // 1 or more
  const std::byte* const* sources;
  std::size_t source_count;  // 1 or more
  std::size_t elements;      // of each array
  bool streaming;            // write the results past the caches
};

using ManyKernel = void (*)(const ManyOperands& operands);

}  // namespace plait
