// Sums in two rounds, whose bits do not depend on the order of their operands (ordered_reduction.h).
#pragma once

#include <cstddef>

#include "core/reduction.h"

namespace plait {

// A sum in two rounds. Each operand has a key; the largest one of all operands says how each is cut into steps, which
// are whole numbers; their sum is rounded to the result. Keys and steps are those of reals, of which a complex element
// has two.
struct WideSum {
  std::size_t reals = 1;       // of an element
  Reducer keys;                // the largest
  Reducer steps;               // the sum
  std::size_t real_bytes = 0;  // from one real to the next

  // Of `count` reals each.
  void (*make_keys)(void* keys, const void* operands, std::size_t count) = nullptr;
  void (*cut)(void* steps, const void* operands, const void* largest_keys, std::size_t count) = nullptr;
  void (*round)(void* results, const void* steps, const void* largest_keys, std::size_t count) = nullptr;
};

namespace detail {

// Elements of that many reals, with steps as wide as that many operands need; nullptr: there are too many for any
// width.
const WideSum* wide_sum_of_f32(int reals, int operands);
const WideSum* wide_sum_of_f64(int reals, int operands);

}  // namespace detail
}  // namespace plait
