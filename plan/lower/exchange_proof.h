// The proof of an all-to-all in which nobody passes anything on: of one rank's part of it.
#pragma once

#include "plan/algorithm/exchange.h"
#include "plan/model/builder.h"

namespace plait::plan {

// Ok when the rank sends each block that it has for another straight to that one, once, gets each that others have for
// it straight from them, once, waits with none of it for anything, and its schedule does that. Where this holds for all
// ranks the plan is right: of two ranks each knows the one message in each direction, and no message needs another.
// Precondition: exchange.direct. `semantics`: an all-to-all's.
Status prove_direct(const Exchange& exchange, const Hierarchy& hierarchy, const Routes& routes, const OwnPlan& own,
                    int rank);

}  // namespace plait::plan
