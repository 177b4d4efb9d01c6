// The instruction sets that the vector kernels may use on this processor.
#pragma once

#include <cstdint>

namespace plait::detail {

// As bits of Highway's: HWY_AVX3, HWY_AVX2 and HWY_SSE4. What hwy::SupportedTargets() finds of them; but the library
// that it is in measures the processor's clock when it is loaded, 3 ms of every rank's start. Thread-safe.
std::int64_t processor_targets();

}  // namespace plait::detail
