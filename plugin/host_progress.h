// What differs between MPI libraries in how a request of ours lives among theirs.
#pragma once

#include <mpi.h>

namespace plait {

// Has `progress` called from within the host's own progress, so that every call of the program that waits in the host
// moves our operations on. False where the host has no such hook: then a request's own poll function does it.
bool join_host_progress(int (*progress)());

// A generalized request (MPI 3.1, section 12.2). `poll` is called while the program waits for it, where the host can.
struct RequestFunctions {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free;
  MPI_Grequest_cancel_function* cancel;
  int (*poll)(void* state, MPI_Status* status);
};
int start_request(const RequestFunctions& functions, void* state, MPI_Request* request);

}  // namespace plait
