// plait_set_plan(): a plan that the program names for one communicator.
#pragma once

#include "runtime/call/answer.h"
#include "runtime/execution/communicator.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Collective over the communicator; sets it up for all calls, and blocks. `plan`: see plait_mpi.h; empty: the
// planner's own again. May throw std::bad_alloc.
Answer force_plan(Communicator& communicator, const char* plan);

}  // namespace plait::runtime
