// From a program to the messages of all ranks.
#pragma once

#include "core/status.h"
#include "plan/algorithm/algorithms.h"
#include "plan/builder.h"
#include "plan/grid.h"
#include "plan/program.h"

namespace plait {

// Segments into which the vector must be cut for this program; fails when it names a level that the grid lacks.
Result<int> segments_needed(const Program& program, const Grid& grid);

// Emits the program's messages. The collective is allreduce or barrier, reduce, bcast, allgather(v), or
// reduce_scatter(_block); reduce and bcast use the rank with all coordinates 0 as root. Fails when an instruction does
// not apply to the data at that point (P²'s rules of validity), or when RS or AG meet a grid that is not uniform.
Status lower_program(const Program& program, const Grid& grid, Builder& builder);

}  // namespace plait
