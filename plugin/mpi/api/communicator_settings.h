// What a program sets for one communicator: plait_set_plan(), plait_set_channels().
#pragma once

#include <mpi.h>

namespace plait::plugin {

// Both are collective over the communicator: see plait_mpi.h. They return MPI_SUCCESS or MPI_ERR_ARG on all ranks
// alike, or an error that was raised. Precondition: not MPI_COMM_NULL. May throw std::bad_alloc.
int force_plan(MPI_Comm comm, const char* plan);
int choose_channels(MPI_Comm comm, const char* channels);

}  // namespace plait::plugin
