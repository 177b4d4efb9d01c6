// Persistent collectives (MPI 4.0, section 6.13; Open MPI 4.1 has them with the prefix MPIX_).
//
// Plan, types and memory are prepared once, where the request is made; a start only says that it was made
// (start_order.h). A generalized request cannot be persistent: the program is given the binding's own request (Host),
// or a persistent receive (persistent_receive.h).
#pragma once

#include <mpi.h>

#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/request/operation.h"

namespace plait::plugin {

// Where the persistent collectives of a communicator run; nullptr: on the host, for `reason`. Collective and blocking
// at the first call.
PersistentSpace* persistent_space(MpiCommunicator& communicator, const char*& reason);

// For a rank that has no memory to take part in one that the others may make. Collective; blocks.
// A request of a call that the host carries out, each start of it by the operation's errand. Returns an MPI error code.
int make_host_request(MpiOperation& operation, MPI_Request* request);

void decline_request(PersistentSpace& space);

// Makes the program's request for what was prepared. Collective; blocks. `operation.reason` says why the host must take
// the call, and becomes nullptr where it need not: then the result is MPI's error code. The operation is gone unless
// the host takes the call.
int make_request(MpiOperation& operation, PersistentSpace& space, MPI_Request* request);

// For bindings with requests of their own, of which the program frees one. Thread-safe.
void request_freed(MPI_Request handle);

// Before MPI ends: forgets what the program has not freed.
void finish_persistent();

}  // namespace plait::plugin

namespace plait::plugin::binding {

// The program's other requests go to the host: a look into a table, where there are persistent collectives at all.
int start(MPI_Request* request);
int startall(int count, MPI_Request requests[]);
int request_free(MPI_Request* request);

}  // namespace plait::plugin::binding
