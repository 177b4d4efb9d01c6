// A candidate as the plan of one rank: lowered, and proven.
#pragma once

#include "plan/choose/candidate.h"
#include "plan/lower/group_proof.h"

namespace plait::plan {

// What is lowered and proven for all ranks at once (exchanges in which leaders pass data on, motifs) is a plan for so
// many only: a fraction of a second and some tens of megabytes.
inline constexpr int most_wholly_proven_ranks = 256;

// A program by its parts (plan/lower/composition.h), and an exchange without leaders (plan/lower/exchange_proof.h),
// whatever the number of ranks; what is neither among all ranks,
// up to most_wholly_proven_ranks of them. Fails with what is wrong with it, or (unsupported) where there are too many
// ranks.
Result<OwnPlan> proven_plan(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes, int rank,
                            GroupProofs& proofs);

}  // namespace plait::plan
