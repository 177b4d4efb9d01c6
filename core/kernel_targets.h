// The instruction sets that the vector kernels are compiled for. Stands before Highway's own headers.
//
// SSSE3 without SSE4 is too old to be worth the code. EMU128 is miscompiled by GCC 12.2 (its bug
// 106322), so the fallback for processors without SSE4 is Highway's one-lane SCALAR, under every
// compiler.
#pragma once

#define HWY_DISABLED_TARGETS HWY_SSSE3
#define HWY_BROKEN_EMU128 1
