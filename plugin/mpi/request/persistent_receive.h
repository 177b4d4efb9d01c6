// What the program holds of a persistent collective where its MPI has no request that could be given to it (Host): a
// persistent receive of an empty message from this process to itself, started with each start of the collective, and
// sent to when that is complete. All that MPI does with requests then holds for it. After a failure the message is too
// long, so that the function that completes the request returns an error.
//
// Thread-safe. The functions with a result return MPI's error codes.
#pragma once

#include <mpi.h>

namespace plait::plugin {

struct Persistence;  // operation.h

// What becomes of a persistent receive that ended with an error: Open MPI frees it, others leave it to the program.
#if defined(OPEN_MPI)
inline constexpr bool error_frees_receive = true;
#else
inline constexpr bool error_frees_receive = false;
#endif

int make_receive(Persistence& persistence);

// Before the operation runs, so that its end finds the receive. Open MPI may put another handle into `request`.
int start_receive(MPI_Request* request);

// `tag`: of the operation, which may be gone.
void complete_receive(int tag, bool failed);

void give_tag_back(int tag);

}  // namespace plait::plugin
