// The groups of ranks that plait_allreduce_axes() reduces over: communicators of ours, made at first use and kept with
// the program's communicator.
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "runtime/call/axes.h"

namespace plait::plugin {

// The communicator of the calling rank's group; `comm` itself when it has all ranks. Collective over `comm`. Errors
// have been raised on `comm` when it returns; later ones on the group's communicator are returned. Works whether or not
// Plait takes calls. Precondition: not MPI_COMM_NULL. May throw std::bad_alloc.
int axes_group(MPI_Comm comm, const AxesRequest& request, MPI_Comm& group);

// Before the host's MPI_Finalize: frees the groups of all communicators that are still alive.
void free_axes_groups();

}  // namespace plait::plugin
