// Floating-point sums and products whose bits do not depend on the order of their operands, as collectives need them
// (PLAIT_REPRODUCIBLE=order, docs/reproducible.md). The same result comes about in two ways: of all operands at once,
// or of keys and steps, which may be combined two by two in any order.
#pragma once

#include <cstddef>

#include "core/element.h"
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

struct OrderedReduction {
  // Right only where it is given all operands of an element at once, in one reduce_many(). Of one operand alone it is
  // that operand.
  Reducer at_once;
  // For that many operands; nullptr: the reduction has no such form.
  const WideSum* (*wide)(int operands) = nullptr;
};

// nullptr where the bits of the result do not depend on the order anyway, or MPI does not define the combination.
const OrderedReduction* ordered_reduction(Op op, Element element);

}  // namespace plait
