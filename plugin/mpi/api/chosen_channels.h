// plait_set_channels(): the channels that a program allows one communicator.
#pragma once

#include <mpi.h>

namespace plait::plugin {

// Collective over the communicator: see plait_mpi.h. Returns MPI_SUCCESS or MPI_ERR_ARG on all ranks alike, or an error
// that was raised. Precondition: not MPI_COMM_NULL. May throw std::bad_alloc.
int choose_channels(MPI_Comm comm, const char* channels);

}  // namespace plait::plugin
