// The set-up of a team: finds where its ranks are, connects them, and agrees that all of them can go on.
#pragma once

#include <memory>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/team.h"
#include "runtime/team/team_request.h"

namespace plait::runtime {

// Collective over the ranks of `oob`; blocks. `before` is what they have so far, whose oob serves on and no other is
// given; or nullptr. A set-up for short calls turns into one for all calls where the short one does not work. All ranks
// succeed or all fail. Holds no lock while it communicates, so that threads may set up several teams at once, in any
// order.
Result<std::unique_ptr<Team>> set_up(TeamRequest request, std::unique_ptr<Oob> oob, std::unique_ptr<Team> before);

}  // namespace plait::runtime
