// A hierarchy in a few bytes, to be compared by.
#pragma once

#include <cstddef>
#include <span>

#include "topo/hierarchy.h"

namespace plait::topo {

inline constexpr std::size_t print_numbers = 8;

// A BLAKE2s hash of the rest of its image, which it ends with: computed once where the hierarchy was made, not by each
// rank of a node that shares it. Valid as long as the hierarchy's memory.
std::span<const int, print_numbers> print_of(const Hierarchy& hierarchy);

}  // namespace plait::topo
