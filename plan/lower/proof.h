// The proof of a plan: all ranks' schedules are executed symbolically before the first real run (design rule 2).
#pragma once

#include <span>

#include "core/status.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// Ok when, for every rank, with the input apart from the output and with both in one memory (MPI_IN_PLACE):
//  - every access stays within its space, and every step waits only for earlier steps;
//  - the k-th send to a peer meets the peer's k-th receive, block for block, and none is left over;
//  - no step waits for ever, even if a send only completes with its receive;
//  - no two steps that are not ordered touch the same bytes, one of them writing;
//  - at the end every output block has every contribution that it must have, exactly once, combined in the same way on
//  all
//    ranks that get it (the same bits), and, when `commutative` is false, in rank order.
// Otherwise a status that names the rank, the step and what was violated.
Status prove(const Semantics& semantics, std::span<const Schedule> schedules, bool commutative);

}  // namespace plait::plan
