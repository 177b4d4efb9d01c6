// plait_set_channels(): the channels that a program allows one communicator.
#pragma once

#include "runtime/call/answer.h"
#include "runtime/execution/communicator.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

// Collective over `all`, the communicator's ranks, and before they are connected; blocks. `channels`: see plait_mpi.h;
// empty: those of PLAIT_CHANNELS again. May throw std::bad_alloc.
Answer choose_channels(Communicator& communicator, Oob& all, const char* channels);

}  // namespace plait::runtime
