#include "core/processor_targets.h"

#include <hwy/detect_targets.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace plait::detail {

#if HWY_ARCH_X86
namespace {

// What clang 14 has no name for in __builtin_cpu_supports().
bool has_f16c_and_lzcnt() {
  constexpr unsigned f16c = 1u << 29, lzcnt = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & f16c) == 0) return false;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) != 0 && (c & lzcnt) != 0;
}

bool has_sse4() {
  return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt();
}

bool has_avx3() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
}

}  // namespace

std::int64_t processor_targets() {
  __builtin_cpu_init();
  if (!has_sse4()) return 0;
  if (!has_avx2()) return HWY_SSE4;
  return has_avx3() ? HWY_SSE4 | HWY_AVX2 | HWY_AVX3 : HWY_SSE4 | HWY_AVX2;
}
#else
// The kernels' only instruction set is that which everything is compiled for.
std::int64_t processor_targets() { return 0; }
#endif

}  // namespace plait::detail
