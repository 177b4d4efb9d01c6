// Which groups of ranks a program means that reduces over some dimensions of a grid (plait_allreduce_axes). Local; the
// same on all ranks whose arguments are.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/layer.h"

namespace plait::runtime {

// As the program gives it; see plait_mpi.h.
struct AxesRequest {
  int ndims;
  const int* dims;
  int naxes;
  const int* axes;
};

enum class AxesFault : std::uint8_t { none, dimensions, argument };

// What is wrong with it on a communicator of `ranks`.
AxesFault fault_of(const AxesRequest& request, int ranks);

// Consecutive dimensions that are all reduced over, or all not. Dimensions of one rank are left out, so that requests
// which mean the same groups are equal.
struct AxesRun {
  std::int64_t size;
  bool reduced;
  bool operator==(const AxesRun&) const = default;
};
using AxesGrid = std::vector<AxesRun>;

// Of a request without a fault. The first two need no memory, like all that comes before the ranks know whether they
// make a group.
bool asks_for_all(const AxesRequest& request);
bool asks_for(const AxesRequest& request, const AxesGrid& grid);
AxesGrid grid_of(const AxesRequest& request);

// The same for the members of one group: the rank with its coordinates on the reduced dimensions set to 0.
int color_of(const AxesGrid& grid, int rank);

}  // namespace plait::runtime
