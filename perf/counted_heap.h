// What operator new has given and has not got back, by all threads of a measuring program that is linked with it: bytes
// as the allocator rounds them, stacks and what malloc() gave aside.
#pragma once

#include <cstdint>

namespace plait {

std::int64_t heap_now();
std::int64_t heap_peak();
void forget_heap_peak();  // it is what there is now

}  // namespace plait
