// The instruction sets that the vector kernels are compiled for. Stands before Highway's own headers.
//
// SSSE3 without SSE4 is too old to be worth the code. EMU128 is miscompiled by GCC 12.2 (its bug
// 106322), so the fallback for processors without SSE4 is Highway's one-lane SCALAR, under every
// compiler.
//
// PLAIT_LEFT_OUT_TARGETS: those that a sanitizer's build does without, since they run the same loops as
// the others, and each takes a minute to compile there. The release build tests all of them.
#pragma once

#ifndef PLAIT_LEFT_OUT_TARGETS
#define PLAIT_LEFT_OUT_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | PLAIT_LEFT_OUT_TARGETS)
#define HWY_BROKEN_EMU128 1
