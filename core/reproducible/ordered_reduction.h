// Floating-point sums and products whose bits do not depend on the order of their operands, as collectives need them
// (PLAIT_REPRODUCIBLE=order, docs/reproducible.md). The same result comes about in two ways: of all operands at once,
// or of keys and steps, which may be combined two by two in any order.
#pragma once

#include "core/element.h"
#include "core/reduction.h"
#include "core/reproducible/wide_sum.h"

namespace plait {

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
