// Collectives by binomial trees of all ranks in their order, whatever node they are on, as the simplest MPI has them:
// what the traffic of others is compared with.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/lower/bound_schedule.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Of a rank, rooted at rank 0, without memory: a message is sent, or received, when the one before has been, the larger
// subtrees first on the way down and last on the way up. A reduction and a broadcast make an all-reduce; pieces are
// gathered on the way to the root, or scattered from it. `bytes` as of the vector (bcast, reduce, allreduce), else of a
// rank's piece. None of an all-to-all.
std::optional<plan::BoundSchedule> binomial_trees(Collective collective, std::uint64_t bytes, int rank, int ranks);

}  // namespace plait::tuner
