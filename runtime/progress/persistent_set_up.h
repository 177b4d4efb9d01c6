// Connects the ranks of a communicator for its persistent collectives.
#pragma once

#include "core/status.h"
#include "runtime/progress/persistent_space.h"

namespace plait::runtime {

// Collective over the communicator, that of the space; blocks. All ranks succeed or all fail.
Result<SpaceConnections> connect_space(Communicator& communicator) noexcept;

}  // namespace plait::runtime
