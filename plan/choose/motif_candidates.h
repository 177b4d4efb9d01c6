// Rewritings that a single call's candidates have beside programs and exchanges (Mahajan et al., NSDI '23,
// section 4.2).
#pragma once

#include <string>
#include <vector>

#include "plan/choose/candidate_context.h"
#include "plan/model/collective.h"

namespace plait::plan {

// Names that named_candidate() takes, without a price:
//  - long all-to-alls between several nodes in splines, so that fewer ranks send to one at a time (incast);
//  - long calls over rails of unequal rates: segments, dealt out in proportion;
//  - long all-reduces: segments, each reduced to its nodes' leaders and broadcast from there, so that the broadcast of
//    one goes the other way beside the reduction of the next.
// None for groups of more than 64 ranks, whose rewritings take long to prove in a program's first call.
std::vector<std::string> motif_names(const Call& call, const CandidateContext& context);

}  // namespace plait::plan
