// Counts the calls of operator new in this program, for promises not to allocate.
#pragma once

#include <cstddef>

namespace plait::tl {
std::size_t allocations();
}
