// The C library's allocator, as libplait.so defines it: a jump to the next definition in the order of symbols, until
// PLAIT_SHARED=malloc lets large blocks come from the arena.
#pragma once

namespace plait::preload {

// From now on blocks of 64 KiB and more come from the arena, where there is one. Not where the program has an allocator
// of its own, before or behind this library: its memory stays private, and one line says so. Thread-safe.
void share_allocations();

}  // namespace plait::preload
