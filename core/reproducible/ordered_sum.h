// Sums whose bits depend on nothing but which operands there are: not on their order, nor on how many zeros are among
// them, nor on how they were brought together.
//
// The largest operand sets a grid, of 3 bits below its last one; each operand is rounded to the grid, to the nearest;
// what is then added are integers, exactly, and their sum is rounded once. (Pre-rounding: Demmel and Nguyen, "Parallel
// Reproducible Summation", IEEE TC 64(7), 2015, section 3; with one bin as wide as the type.) What it costs and how
// exact it is: docs/reproducible.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reproducible/real.h"

namespace plait::detail {

inline constexpr int guard_bits = 3;

// By the largest key of the operands their grid is chosen: the field of its exponent, at least 1; 0: of a negative
// zero, so that a sum of such is one.
template <class F>
int key_of(const Real<F>& real) {
  return real.is_zero() && real.negative ? 0 : real.field;
}

// A finite operand's size on the grid of `key`, which is not below its own.
template <class F>
typename F::Significand steps_of(const Real<F>& real, int key) {
  return rounded_down(static_cast<typename F::Significand>(real.significand << guard_bits), key - real.field);
}

// A sum as an integer of its grid's steps.
template <class F, class Word>
void store_sum(std::byte* to, int key, bool negative, Word steps) {
  if (steps == 0) return store_zero<F>(to, key == 0);
  store_rounded<F>(to, negative, steps, key - guard_bits);
}

// Which operands that are not finite there are; then there is no grid.
struct Specials {
  bool nan = false, positive = false, negative = false;

  template <class F>
  void add(const Real<F>& real) {
    nan |= real.kind == Kind::nan;
    (real.negative ? negative : positive) |= real.kind == Kind::infinite;
  }
  template <class F>
  void store_sum(std::byte* to) const {
    if (nan || (positive && negative)) return store_nan<F>(to);
    store_infinity<F>(to, negative);
  }
};

// The sum of any number of operands of any format. Slow, and the measure of all that is fast.
template <class F>
class GridSum {
 public:
  explicit GridSum(int key) : key_(key) {}

  void add(const Real<F>& real) {
    if (key_ == F::special_field) return specials_.add(real);
    const Uint128 steps = steps_of(real, key_);
    const auto high = static_cast<Int128>(steps >> 64), low = static_cast<Int128>(steps & low_bits<Uint128>(64));
    high_ += real.negative ? -high : high;
    low_ += real.negative ? -low : low;
  }

  void store(std::byte* to) const {
    if (key_ == F::special_field) return specials_.store_sum<F>(to);
    // 192 bits: two's complement, then sign and size.
    Int128 high = high_ + (low_ >> 64);
    auto low = static_cast<std::uint64_t>(static_cast<Uint128>(low_));
    const bool negative = high < 0;
    if (negative) {
      low = ~low + 1;
      high = -high - (low != 0 ? 1 : 0);
    }
    const auto size = static_cast<Uint128>(high);
    const int beyond = bit_width(size) > 64 ? bit_width(size) - 64 : 0;  // below 64: there are not so many ranks
    const auto most = static_cast<Uint128>(low) >> beyond | size << (64 - beyond);
    const bool rest = (low & ((std::uint64_t{1} << beyond) - 1)) != 0;
    if (most == 0) return store_zero<F>(to, key_ == 0);
    store_rounded<F>(to, negative, most | (rest ? 1 : 0), std::int64_t{key_} - guard_bits + beyond);
  }

 private:
  int key_;
  Specials specials_;
  Int128 high_ = 0, low_ = 0;  // sums of the operands' words
};

}  // namespace plait::detail
