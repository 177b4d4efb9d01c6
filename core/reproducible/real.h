// Floating-point numbers as integers: what sums and products that do not depend on the order of their operands are made
// of. Nothing here depends on how the processor rounds, or whether it flushes subnormal numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plait::detail {

__extension__ using Uint128 = unsigned __int128;
__extension__ using Int128 = __int128;

// A format: p bits of significand, and a field of the exponent. A finite number is significand * 2^field in units of
// the smallest subnormal number / 2; those of fields 0 and 1 have the same unit.
template <class Word, class BitsOf, int Precision, int FieldBits, bool HiddenBit>
struct Format {
  using Significand = Word;  // has 4 bits to spare
  using Bits = BitsOf;
  static constexpr int precision = Precision, field_bits = FieldBits;
  static constexpr bool hidden_bit = HiddenBit;
  static constexpr int stored_bits = HiddenBit ? Precision - 1 : Precision;  // of the significand
  static constexpr int special_field = (1 << FieldBits) - 1;                 // of infinities and NaNs
  static constexpr std::size_t value_bytes = (1 + FieldBits + stored_bits) / 8;
};

struct F32 : Format<std::uint64_t, std::uint32_t, 24, 8, true> {
  static constexpr std::size_t extent = 4;
};
struct F64 : Format<std::uint64_t, std::uint64_t, 53, 11, true> {
  static constexpr std::size_t extent = 8;
};
// x87's, whose significand has its first bit stored, and whose place in memory is padded.
struct F80 : Format<Uint128, Uint128, 64, 15, false> {
  static constexpr std::size_t extent = sizeof(long double);
};
struct F128 : Format<Uint128, Uint128, 113, 15, true> {
  static constexpr std::size_t extent = 16;
};

enum class Kind : std::uint8_t { finite, infinite, nan };

template <class F>
struct Real {
  Kind kind = Kind::finite;
  bool negative = false;
  int field = 1;                            // at least 1; special_field where it is not finite
  typename F::Significand significand = 0;  // of a finite one: less than 2^precision; 0: a zero

  bool is_zero() const { return kind == Kind::finite && significand == 0; }
};

template <class Word>
constexpr Word low_bits(int count) {
  return (Word{1} << count) - 1;
}

template <class F>
Real<F> real_of(const std::byte* at) {
  using Word = typename F::Significand;
  typename F::Bits bits = 0;
  std::memcpy(&bits, at, F::value_bytes);
  const auto stored = static_cast<Word>(bits) & low_bits<Word>(F::stored_bits);
  const int field = static_cast<int>(bits >> F::stored_bits) & F::special_field;
  Real<F> real{.negative = (bits >> (F::stored_bits + F::field_bits) & 1) != 0, .field = field == 0 ? 1 : field};
  const auto first = Word{1} << (F::precision - 1);
  const bool has_first = F::hidden_bit || (stored & first) != 0;
  if (field == F::special_field) {
    real.kind = has_first && (stored & low_bits<Word>(F::precision - 1)) == 0 ? Kind::infinite : Kind::nan;
  } else if (field != 0 && !has_first) {  // x87 knows no such numbers any more
    real.kind = Kind::nan;
    real.field = F::special_field;
  } else {
    real.significand = F::hidden_bit && field != 0 ? stored | first : stored;
  }
  return real;
}

namespace real_detail {
template <class F>
void store(std::byte* to, bool negative, int field, typename F::Significand stored) {
  using Bits = typename F::Bits;
  const Bits bits = static_cast<Bits>(stored) | static_cast<Bits>(field) << F::stored_bits |
                    static_cast<Bits>(negative ? 1 : 0) << (F::stored_bits + F::field_bits);
  std::memcpy(to, &bits, F::value_bytes);
}
}  // namespace real_detail

template <class F>
void store_zero(std::byte* to, bool negative) {
  real_detail::store<F>(to, negative, 0, 0);
}

template <class F>
void store_infinity(std::byte* to, bool negative) {
  using Word = typename F::Significand;
  real_detail::store<F>(to, negative, F::special_field, F::hidden_bit ? 0 : Word{1} << (F::precision - 1));
}

// One NaN for all: quiet, positive, without a message.
template <class F>
void store_nan(std::byte* to) {
  using Word = typename F::Significand;
  const Word quiet = Word{1} << (F::precision - 2);
  real_detail::store<F>(to, false, F::special_field, F::hidden_bit ? quiet : quiet | Word{1} << (F::precision - 1));
}

template <class Word>
int bit_width(Word value) {
  if constexpr (sizeof(Word) <= 8) {
    return std::bit_width(value);
  } else {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(value));
  }
}

// value / 2^shift, to the nearest integer, of two the even one.
template <class Word>
Word rounded_down(Word value, int shift) {
  constexpr int bits = 8 * sizeof(Word);
  if (shift <= 0) return value;
  if (shift > bits) return 0;
  const Word whole = shift == bits ? 0 : value >> shift;
  const Word half = Word{1} << (shift - 1);
  const Word rest = shift == bits ? value : value & low_bits<Word>(shift);
  return whole + (rest > half || (rest == half && (whole & 1) != 0) ? 1 : 0);
}

// magnitude * 2^field in Real's units, rounded once, to the nearest; overflows to infinity. `magnitude` is not 0; its
// last bit may stand for all that was beyond it where it has more than precision + 1 bits.
template <class F, class Word>
void store_rounded(std::byte* to, bool negative, Word magnitude, std::int64_t field) {
  const std::int64_t top = field + bit_width(magnitude) - F::precision;  // its field, were it normal
  std::int64_t result = top > 1 ? top : 1;
  const std::int64_t shift = result - field;
  Word significand = 0;
  if (shift >= 0)
    significand = rounded_down(magnitude, shift > 2 * 128 ? 2 * 128 : static_cast<int>(shift));
  else
    significand = magnitude << -shift;  // of no more bits than the precision
  if (bit_width(significand) > F::precision) {
    significand >>= 1;
    ++result;
  }
  if (result >= F::special_field) return store_infinity<F>(to, negative);
  const bool subnormal = bit_width(significand) < F::precision;
  auto stored = static_cast<typename F::Significand>(significand);
  if (F::hidden_bit) stored &= low_bits<typename F::Significand>(F::precision - 1);
  real_detail::store<F>(to, negative, subnormal ? 0 : static_cast<int>(result), stored);
}

}  // namespace plait::detail
