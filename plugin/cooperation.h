// What the ranks of a communicator of ours do together while it is set up, by the host's collectives. All return an MPI
// error code.
#pragma once

#include <mpi.h>

namespace plait::plugin {

int meet_all(MPI_Comm comm);
int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm);
int tell_all(void* text, int bytes, MPI_Comm comm);  // what rank 0 has
int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

}  // namespace plait::plugin
