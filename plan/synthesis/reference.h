// P²'s semantics by rank (section 3.2 and 3.3): the specification that the level form of level_state.h is tested
// against, and what says where a given program goes wrong.
//
// A rank's state is a matrix of k chunks (rows) by k contributors (columns) for k ranks. Rank d starts with its own
// column in every chunk; an all-reduce is done when every rank has every contribution in every chunk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/program.h"

namespace plait::plan {

// State matrices take k^3 bits: 16 MiB at the most.
inline constexpr int most_reference_ranks = 512;

// Ok when the program is valid and does an all-reduce over levels of these cardinalities (outermost first). Otherwise
// Code::invalid with the first rule that is violated, the instruction, the ranks (0 .. k-1, innermost level fastest)
// and the chunk (0 .. k-1) where it shows. Code::unsupported for more than most_reference_ranks; whether a program is
// valid does not depend on the cardinalities as long as they exceed 1, so smaller ones will tell.
Status run_reference(const Program& program, std::span<const int> cardinalities);

// All-reduce programs by size, by exhaustive search over state matrices: element s counts those of s instructions,
// s <= most_instructions. Levels of cardinality 1 do not count. Precondition: at most most_reference_ranks ranks.
//
// With `master`, also the paper's explicit Master form: for a range (j, i] that does not reach the innermost level, the
// first of the parallel groups under each e_j only; the other ranks keep what they have. So two levels have 110
// programs, none longer than 5: by size 1, 4, 30, 51, 24. (The paper's table of examples, which has a single rack at
// the top, leaves open whether it is one group under each e_j or one of all; on two levels there is no difference.)
std::vector<std::uint64_t> count_reference(std::span<const int> cardinalities, int most_instructions,
                                           bool master = false);

}  // namespace plait::plan
