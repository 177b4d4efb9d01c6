// The calls that make communicators, which may be set up then (runtime/call/made_communicator.h).
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "plugin/lists/collective_functions.h"

namespace plait::plugin {

// At the end of MPI_Init.
void set_up_world();

}  // namespace plait::plugin

namespace plait::plugin::binding {

#define PLAIT_DECLARE(Name, name, parameters, arguments) int name parameters;
PLAIT_COMMUNICATORS(PLAIT_DECLARE)
#undef PLAIT_DECLARE

}  // namespace plait::plugin::binding
