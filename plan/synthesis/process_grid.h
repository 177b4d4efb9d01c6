// Process grids, found from the communicators that a program makes over them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait::plan {

// Ranks of MPI_COMM_WORLD that differ in one coordinate only: base, base + stride, ... base + (size - 1) * stride.
struct GridAxis {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  auto operator<=>(const GridAxis&) const = default;
};

// The axes, outermost (slowest) first, of the members of a communicator, given by their ranks in MPI_COMM_WORLD in the
// order of the communicator: members[i] = members[0] + sum of i_a * stride_a, where i_a are the digits of i.
// Neighbouring axes that are one progression are one axis: {0 1 2 3} is 4@1. One member has no axes. Nothing when the
// members are no such progression with positive strides, or when it does not begin at a row's first rank: no row-major
// grid has {1 2} as its row. O(members).
std::optional<std::vector<GridAxis>> grid_axes(std::span<const int> members);

// "2@4,2@1": size@stride, outermost first; "" for no axes. And back; nothing for other texts.
std::string text(std::span<const GridAxis> axes);
std::optional<std::vector<GridAxis>> parse_grid_axes(std::string_view text);

// The dimensions, outermost first, of the coarsest row-major grid over ranks 0 .. ranks-1 in which each of these axes
// is one or several neighbouring dimensions. Nothing when there is none.
std::optional<std::vector<int>> grid_of(std::int64_t ranks, std::span<const GridAxis> axes);

// The dimensions of the grid that an axis covers, as indices into `dims`, ascending. Precondition: grid_of() gave
// `dims` for a set of axes that this one is part of.
std::vector<int> dimensions_of(std::span<const int> dims, const GridAxis& axis);

}  // namespace plait::plan
