// Between a grid and dense memory, by loops that know the length of a run where it is short.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/lower/bound_schedule.h"
#include "tl/layer.h"

namespace plait::tl {

// Bytes [at, at + bytes) of the grid whose space begins at `base`, to and from dense memory. They must lie in the grid.
void gather(const RunGrid& grid, const std::byte* base, std::uint64_t at, std::byte* dense, std::size_t bytes);
void scatter(const RunGrid& grid, std::byte* base, std::uint64_t at, const std::byte* dense, std::size_t bytes);

}  // namespace plait::tl
