// Sums in two rounds (ordered_reduction.h): how wide the steps are follows from how many operands there are at most.
#pragma once

#include "core/reproducible/ordered_reduction.h"

namespace plait::detail {

// Elements of that many reals; nullptr: there are too many operands for any width.
const WideSum* wide_sum_of_f32(int reals, int operands);
const WideSum* wide_sum_of_f64(int reals, int operands);

}  // namespace plait::detail
