// Random grids for the tests of tl/.
#pragma once

#include <random>

#include "plan/lower/bound_schedule.h"

namespace plait::tl {

// At least `bytes` from `origin` on, in runs of one to some elements, up to four levels deep.
template <class Random>
RunGrid random_grid(Random& random, std::uint64_t origin, std::uint64_t bytes, std::uint64_t element) {
  constexpr std::uint64_t lengths[] = {1, 1, 2, 3, 4, 8, 16, 40};
  RunGrid grid;
  grid.origin = origin;
  grid.run = element * lengths[random() % 8];
  std::uint64_t extent = grid.run, held = grid.run;
  const int levels = 1 + static_cast<int>(random() % 4);
  for (int l = 0; l < levels; ++l) {
    const std::uint64_t missing = (bytes + held - 1) / held;
    const std::uint64_t count = l + 1 == levels ? std::max<std::uint64_t>(missing, 2) : 2 + random() % 4;
    const std::uint64_t stride = extent + element * (random() % 3);
    grid.level[static_cast<std::size_t>(grid.levels++)] = {count, stride};
    extent = (count - 1) * stride + extent;
    held *= count;
  }
  return grid;
}

}  // namespace plait::tl
