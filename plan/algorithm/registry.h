// All algorithms within a group, one line each. Where several are equally cheap the first is taken, and where a
// program's text names none the first that fits groups of any size is meant.
#pragma once

#include <array>
#include <string_view>

#include "plan/algorithm/algorithm.h"

#define PLAIT_ALGORITHMS(LINE) \
  LINE(ring)                   \
  LINE(recursive_doubling)     \
  LINE(recursive_halving)      \
  LINE(direct)                 \
  LINE(dissemination)          \
  LINE(double_tree)            \
  LINE(binomial)               \
  LINE(knomial4)               \
  LINE(knomial8)               \
  LINE(postal4)                \
  LINE(chain)                  \
  LINE(flat)                   \
  LINE(shared)                 \
  LINE(bine)

namespace plait::plan {

namespace algorithms {
#define PLAIT_DECLARED(algorithm) extern const Algorithm algorithm;
PLAIT_ALGORITHMS(PLAIT_DECLARED)
#undef PLAIT_DECLARED
}  // namespace algorithms

#define PLAIT_LISTED(algorithm) &algorithms::algorithm,
inline constexpr std::array all_algorithms = {PLAIT_ALGORITHMS(PLAIT_LISTED)};
#undef PLAIT_LISTED

// Null where there is none of that name.
const Algorithm* algorithm_named(std::string_view name);
// The one that a program's text means when it names none.
const Algorithm* default_algorithm(Instruct what);

}  // namespace plait::plan
