// Products whose bits depend on nothing but which operands there are.
//
// Significands are multiplied in ascending order, which is that of no rank, in 128 bits; exponents and signs apart, so
// that nothing overflows or vanishes on the way; and the product is rounded once. Powers of two, ones among them,
// change no bit of the others' significands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/reproducible/real.h"

namespace plait::detail {

// The high half of a product of two that have their highest bit; to the nearest, with its highest bit again. Returns by
// how many bits it was shifted up for that.
inline int multiply(Uint128& product, Uint128 by) {
  const auto half = [](Uint128 value, bool high) {
    return static_cast<Uint128>(static_cast<std::uint64_t>(high ? value >> 64 : value));
  };
  const Uint128 low = half(product, false) * half(by, false);
  const Uint128 cross = half(product, true) * half(by, false) + half(low, true);  // no carry: (2^64-1)^2 + 2^64-1
  const Uint128 other = half(product, false) * half(by, true) + half(cross, false);
  Uint128 high = half(product, true) * half(by, true) + half(cross, true) + half(other, true);
  Uint128 rest = other << 64 | half(low, false);
  const bool shifted = high >> 127 == 0;
  if (shifted) {
    high = high << 1 | rest >> 127;
    rest <<= 1;
  }
  const Uint128 middle = Uint128{1} << 127;
  if (rest > middle || (rest == middle && (high & 1) != 0)) {
    if (++high == 0) {
      product = middle;
      return shifted ? 0 : -1;
    }
  }
  product = high;
  return shifted ? 1 : 0;
}

// `significands`: room for one of each operand. at(i): where the i-th operand is.
template <class F, class At>
void store_product(std::byte* to, std::span<Uint128> significands, At&& at) {
  constexpr int unit = (1 << (F::field_bits - 1)) - 1 + F::precision - 1;  // the field of 2^0 as a significand of 1
  bool negative = false, nan = false, infinite = false, zero = false;
  std::int64_t field = 0;
  for (std::size_t i = 0; i < significands.size(); ++i) {
    const Real<F> real = real_of<F>(at(i));
    negative ^= real.negative;
    nan |= real.kind == Kind::nan;
    infinite |= real.kind == Kind::infinite;
    zero |= real.is_zero();
    const auto significand = static_cast<Uint128>(real.significand);
    const int shift = significand == 0 ? 0 : 128 - bit_width(significand);
    significands[i] = significand << shift;
    field += real.field - shift - unit + 128;  // multiply() leaves out 128 bits
  }
  if (nan || (infinite && zero)) return store_nan<F>(to);
  if (infinite) return store_infinity<F>(to, negative);
  if (zero) return store_zero<F>(to, negative);
  std::ranges::sort(significands);
  Uint128 product = significands[0];
  for (const Uint128 significand : significands.subspan(1)) field -= multiply(product, significand);
  store_rounded<F>(to, negative, product, field + unit - 128);
}

}  // namespace plait::detail
