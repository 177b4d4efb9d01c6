// Element types and reduction operators, named independently of MPI.
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
  f16 /* IEEE's half */, bf16 /* the upper half of an f32 */,
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

}  // namespace plait
