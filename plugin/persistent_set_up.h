// Connects the ranks of a communicator for its persistent collectives.
#pragma once

#include "core/status.h"
#include "plugin/persistent_space.h"

namespace plait::plugin {

// Collective over the communicator, that of the space; blocks. All ranks succeed or all fail.
Result<SpaceConnections> connect_space(Communicator& communicator) noexcept;

}  // namespace plait::plugin
