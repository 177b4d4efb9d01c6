// A hierarchy in a few bytes, to be compared by.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/keyed_hash.h"
#include "topo/hierarchy.h"

namespace plait::topo {

inline constexpr std::size_t print_numbers = sizeof(KeyedHash) / sizeof(int);

// A BLAKE2s hash of the rest of its image, which ends with it: computed once where the hierarchy was made, not by each
// rank of a node that shares it. Valid as long as the hierarchy's memory.
inline std::span<const int, print_numbers> print_of(const Hierarchy& hierarchy) {
  static constexpr std::array<int, print_numbers> of_none{};
  if (hierarchy.image().empty()) return of_none;
  return hierarchy.image().last<print_numbers>();
}

}  // namespace plait::topo
