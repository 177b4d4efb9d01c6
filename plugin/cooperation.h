// What the set-up waits for. In a blocking call it waits in the host; in a fiber (core/fiber.h) it leaves the fiber
// until its time has come.
#pragma once

#include <mpi.h>

#include <span>

namespace plait {

// Collectives of the host on a communicator of ours. All return an MPI error code.
int meet_all(MPI_Comm comm);
int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm);
int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

int wait_for(MPI_Request& request);
int wait_for(std::span<MPI_Request> requests);

// In a loop that waits for other ranks, when nothing has moved.
void let_others_go_on();

}  // namespace plait
