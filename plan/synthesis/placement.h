// Placement of parallelism axes on a system's hierarchy (P², sections 2.4 and 2.5).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace plait::plan {

// rows[a][j]: how many of axis a's shards are spread over level j of the system. Columns multiply to the system's
// cardinalities, rows to the axes' sizes.
struct ParallelismMatrix {
  std::vector<std::vector<int>> rows;
  bool operator==(const ParallelismMatrix&) const = default;
};
std::string text(const ParallelismMatrix& matrix);  // "[[2 2] [2 8]]"

// What to place and to reduce. Cardinalities of the system outermost first; `reduce` are indices into `axes`.
struct GridRequest {
  std::vector<int> system;
  std::vector<int> axes;
  std::vector<int> reduce;
};

// Ok, or what is wrong: factors that are not positive or do not multiply to the same number of ranks, more than 8
// levels or axes, an axis that does not exist or is named twice.
Status check(const GridRequest& request);

// All matrices, in ascending order of their rows. Precondition: check() is ok.
std::vector<ParallelismMatrix> parallelism_matrices(std::span<const int> system, std::span<const int> axes);

// One level of the hierarchy that a reduction's group spans.
struct GroupLevel {
  int cardinality;
  int system_level;
};
// The reduction axes' factors of each system level multiplied (P²'s collapsed form), outermost first, ones dropped.
std::vector<GroupLevel> group_levels(const ParallelismMatrix& matrix, std::span<const int> reduce);

// The device (0 .. ranks-1 in the system's order, innermost level fastest) of each grid rank. Grid ranks are numbered
// row-major over the axes, the last axis fastest; each axis' coordinate is mixed-radix over its row of the matrix.
std::vector<int> devices_of_grid(std::span<const int> system, std::span<const int> axes,
                                 const ParallelismMatrix& matrix);

}  // namespace plait::plan
