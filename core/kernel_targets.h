// The instruction sets that the vector kernels are compiled for. Stands before Highway's own headers.
//
// SSSE3 without SSE4 is too old to be worth the code. EMU128 is miscompiled by GCC 12.2 (its bug
// 106322), so the fallback for processors without SSE4 is Highway's one-lane SCALAR, under every
// compiler.
//
// PLAIT_FEWER_TARGETS leaves SSE4 out as well: it runs the same loops as AVX2, and with a sanitizer each
// target takes half a minute to compile. The release build tests all of them.
#pragma once

#ifdef PLAIT_FEWER_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#else
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
#define HWY_BROKEN_EMU128 1
