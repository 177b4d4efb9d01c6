// Sets up the team of one of the program's communicators, over the host's messages.
#pragma once

#include <memory>

#include "core/status.h"
#include "plugin/communicator.h"
#include "plugin/layer.h"
#include "runtime/team/set_up.h"
#include "runtime/team/team.h"

namespace plait::plugin {

// Collective over the communicator, with the same extent on all ranks; blocks. `before` is what the communicator has so
// far, or nullptr. All ranks succeed or all fail.
Result<std::unique_ptr<Team>> connect_team(const Communicator& communicator, TeamExtent extent,
                                           std::unique_ptr<Team> before) noexcept;

// For a rank that cannot, while the others call connect_team() with nothing before: they fail at once. Needs no memory
// of ours.
void decline_set_up(const Communicator& communicator) noexcept;

}  // namespace plait::plugin
