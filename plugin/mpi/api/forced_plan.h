// plait_set_plan(): a plan that the program names for one communicator.
#pragma once

#include <mpi.h>

namespace plait::plugin {

// Collective over the communicator: see plait_mpi.h. Returns MPI_SUCCESS or MPI_ERR_ARG on all ranks alike, or an error
// that was raised. Precondition: not MPI_COMM_NULL. May throw std::bad_alloc.
int force_plan(MPI_Comm comm, const char* plan);

}  // namespace plait::plugin
