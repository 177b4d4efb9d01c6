// What the runtime asks of MPI.
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "runtime/execution/caller.h"

namespace plait::plugin {

// Lives for ever.
const Caller& mpi_caller();

// An operator of the program's, as it is handed through the runtime.
OperatorHandle operator_handle(MPI_Op op);

}  // namespace plait::plugin
