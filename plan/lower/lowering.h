// From a program to the messages of all ranks.
#pragma once

#include "core/status.h"
#include "plan/algorithm/program.h"
#include "plan/model/block_moves.h"
#include "plan/model/grid.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

// Bit set of the grid's levels whose groups differ in size.
std::uint8_t uneven_levels(const Grid& grid);

// The collective's task on this grid.
SynthesisTask task_on(const Grid& grid, Collective collective, bool ordered);

// Whether the instruction's algorithm can serve every one of its groups.
bool fits(const Instruction& instruction, const Grid& grid);

// Segments into which the vector must be cut for this program. Fails when the program is not valid for the collective
// on this grid (P²'s rules by level, see SynthesisTask), with the first instruction that is not.
Result<int> segments_needed(const Program& program, const Grid& grid, Collective collective, bool ordered);

// Says the program's moves, for all collectives but alltoall. Rooted collectives use the rank with all coordinates
// 0 as root; an ordered reduction to another root than that brings the result there at the end. Precondition:
// segments_needed() is ok and was used for the semantics of `moves`.
void lower_program(const Program& program, const Grid& grid, bool ordered, BlockMoves& moves);

}  // namespace plait::plan
