// The C library's allocator, as libplait.so defines it: a jump to the next definition in the order of symbols, until
// PLAIT_SHARED=malloc lets large blocks come from elsewhere: the shared heap of the implementation.
#pragma once

#include "plugin/preload/implementation.h"

namespace plait::plugin::preload {

// As in Surroundings (implementation.h). Thread-safe once the source is known; the program has none of its blocks
// before.
void know_blocks(const BlockSource& source);
// From now on blocks of 64 KiB and more come from the source. Precondition: know_blocks() was called.
bool share_allocations();

}  // namespace plait::plugin::preload
