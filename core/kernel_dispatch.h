// Chooses among the instruction sets that a function is compiled for. Stands behind Highway's headers, under HWY_ONCE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/processor_targets.h"
#include "hwy/highway.h"

namespace plait::detail {

template <class Function>
struct Compiled {
  std::int64_t target;
  Function* function;  // nullptr: not compiled for this target
};

// The initializer of an array of Compiled, the widest vectors first. Highway names the functions by macros.
#define PLAIT_COMPILED(FUNCTION)                                                  \
  {                                                                               \
    {HWY_AVX3, HWY_CHOOSE_AVX3(FUNCTION)}, {HWY_AVX2, HWY_CHOOSE_AVX2(FUNCTION)}, \
        {HWY_SSE4, HWY_CHOOSE_SSE4(FUNCTION)}, {                                  \
      HWY_STATIC_TARGET, &HWY_STATIC_DISPATCH(FUNCTION)                           \
    }                                                                             \
  }

template <class Function>
bool runs_here(const Compiled<Function>& compiled) {
  return compiled.function != nullptr &&
         (compiled.target == HWY_STATIC_TARGET || (processor_targets() & compiled.target) != 0);
}

// The widest that this processor runs; there is always one.
template <class Function, std::size_t N>
Function* best_of(const Compiled<Function> (&all)[N]) {
  for (const Compiled<Function>& compiled : all)
    if (runs_here(compiled)) return compiled.function;
  return all[N - 1].function;
}

}  // namespace plait::detail
