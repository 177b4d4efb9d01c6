// Communicators that are set up where they are made, for programs whose calls on them never block: a call that must
// return cannot wait for a set-up, but one that makes a communicator may (decision 011).
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "plugin/lists/collective_functions.h"
#include "runtime/execution/communicator.h"

namespace plait::plugin {

// A call that does not block, on a communicator that is not set up.
void note_waiting_post(Communicator& communicator);

// At the end of MPI_Init: sets up MPI_COMM_WORLD where PLAIT_SETUP_CALLS is 0. Collective then; blocks.
void set_up_world();

}  // namespace plait::plugin

namespace plait::plugin::binding {

#define PLAIT_DECLARE(Name, name, parameters, arguments) int name parameters;
PLAIT_COMMUNICATORS(PLAIT_DECLARE)
#undef PLAIT_DECLARE

}  // namespace plait::plugin::binding
