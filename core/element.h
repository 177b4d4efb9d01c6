// Element types and reduction operators, named independently of MPI, and the kernels that combine
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {

// Groups of types, a line each:
// clang-format off
enum class Element : std::uint8_t {
  i8, i16, i32, i64,
  u8, u16, u32, u64,
  f32, f64, f80 /* long double */, f128 /* __float128, Fortran REAL*16 */,
  c32 /* complex of two f32 */, c64, c80, c128,
  bool8,                                      // C and C++ bool
  logical8, logical16, logical32, logical64,  // Fortran LOGICAL*1 .. LOGICAL*8: non-zero is true
  byte8,                                      // MPI_BYTE: bitwise operators only
  // Pairs for maxloc and minloc, laid out as the C struct {value; index} would be.
  pair_f32_i32, pair_f64_i32, pair_i64_i32, pair_i32_i32, pair_i16_i32, pair_f80_i32,
  pair_f32_f32, pair_f64_f64,  // Fortran 2REAL, 2DOUBLE PRECISION (2INTEGER is pair_i32_i32)
  count_,
};

enum class Op : std::uint8_t {
  max, min, sum, prod, land, band, lor, bor, lxor, bxor, maxloc, minloc,
  count_,
};
// clang-format on

std::string_view name(Element element);
std::string_view name(Op op);

// Bytes from one element to the next in an array, trailing padding included.
std::size_t extent(Element element);

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

// The kernel for (op, element), chosen for this processor; nullptr where MPI does not define the
// combination (MPI 3.1, section 5.9.2). Thread-safe; the pointer stays valid for the life of the
// process.
ReduceKernel reduce_kernel(Op op, Element element);

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

// How one call combines two operands: a predefined kernel, or a user's operator behind `apply`.
struct Reducer {
  // result = left op right over `count` elements; aliasing as for ReduceKernel.
  void (*apply)(const Reducer& self, void* result, const void* left, const void* right, std::size_t count) = nullptr;
  ReduceKernel kernel = nullptr;
  ManyKernel many = nullptr;      // nullptr: reduce_many() works with `kernel` or `apply`
  const void* context = nullptr;  // what a user-defined `apply` needs; not owned
  std::size_t element_bytes = 1;
  bool exact = false;  // the bits of the result do not depend on the order in which operands are combined
};

// With a null `kernel` and `apply` where MPI does not define the combination.
Reducer make_reducer(Op op, Element element);

// result = left op right, aliasing as for ReduceKernel; of a predefined operator by the calling thread's team
// (work_team.h) where there is enough of it.
void combine(const Reducer& reducer, std::byte* result, const std::byte* left, const std::byte* right,
             std::size_t elements);

// results[j] = (((sources[0] op sources[1]) op sources[2]) ...), element by element and for every j,
// in one pass over memory: the bits that the two-operand kernel gives when it is applied from the
// left. One source is copied. A result may be one of the sources exactly (the same address);
// otherwise results overlap neither sources nor each other. No alignment is required. What a
// result's padding holds afterwards is not promised.
//
// Streamed results bypass the caches in whole vectors, in those results that are aligned as the
// first one is; a later release store of this thread covers them.
//
// By the calling thread's team, as combine(). Thread-safe where the reducer is. Allocates only for a user's type of
// more than 4 KiB an element.
void reduce_many(const Reducer& reducer, const ManyOperands& operands);

}  // namespace plait
