// What the runtime asks of MPI.
#pragma once

#include "plugin/layer.h"
#include "runtime/execution/caller.h"

namespace plait::plugin {

// Lives for ever.
const Caller& mpi_caller();

}  // namespace plait::plugin
