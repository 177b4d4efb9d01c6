// Sums of floating-point numbers without any rounding, of any format: what others are measured by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/reproducible/real.h"

namespace plait::test {

// A whole number of any size, in units of Real's.
class ExactSum {
 public:
  explicit ExactSum(int highest_field) : words_(static_cast<std::size_t>(highest_field + 320) / 32) {}

  template <class F>
  void add(const std::byte* at, bool subtract = false) {
    const detail::Real<F> real = detail::real_of<F>(at);
    add(real.significand, real.field, real.negative != subtract);
  }
  // size * 2^field.
  void add(detail::Uint128 size, int field, bool negative) {
    for (auto word = static_cast<std::size_t>(field / 32); size != 0; ++word) {
      const int shift = field % 32;
      const auto low = static_cast<std::int64_t>(static_cast<std::uint32_t>(size << shift));
      words_[word] += negative ? -low : low;
      size = (size >> (32 - shift));
      field -= shift;
    }
  }
  // Twice as much.
  void double_it() {
    for (std::int64_t& word : words_) word *= 2;
    settle();
  }
  void negate() {
    for (std::int64_t& word : words_) word = -word;
  }
  // Below 0: -1; 0; above: 1.
  int sign() {
    settle();
    for (std::size_t i = words_.size(); i-- > 0;)
      if (words_[i] != 0) return words_[i] < 0 ? -1 : 1;
    return 0;
  }

 private:
  // The words between 0 and 2^32 - 1, but for the highest.
  void settle() {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      words_[i + 1] += words_[i] >> 32;
      words_[i] &= 0xffffffff;
    }
  }

  std::vector<std::int64_t> words_;
};

}  // namespace plait::test
