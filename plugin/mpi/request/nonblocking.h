// Non-blocking collectives. The program gets a real request of the host's, which works with all of MPI's functions for
// requests; behind it stands an MpiOperation.
//
// They run on what a blocking call has set up: a set-up takes all ranks, and a call that must return whatever the
// others do cannot wait for it. Until then they are the host's, and count as calls that make the set-up worth while.
#pragma once

#include <mpi.h>

#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/request/operation.h"
#include "runtime/execution/decide.h"

namespace plait::plugin {

// What becomes of a call that was prepared.
enum class Admission : std::uint8_t {
  host,    // the host's; `operation.reason` says why
  taken,   // runs here
  failed,  // `operation.error`
};
Admission admit(MpiOperation& operation);

// Why an operation is the host's whatever the communicator's state; nullptr: it need not be. The same on all ranks.
const char* why_host(const MpiOperation& operation);

// Decides what becomes of it. Where it runs here `operation.prepared` is set, else `operation.reason`.
Decision prepare_to_run(MpiOperation& operation, Form form);

// stay_with_host(), of a call that does not block.
bool post_stays_with_host(Communicator& communicator) noexcept;

// What wait() of this thread expects next. `handle`: what the program holds.
void note_latest(MpiOperation& operation, MPI_Request handle);

// Before MPI ends: what was kept for operations to come.
void free_idle_requests();

// Makes the program's request and hands the operation over; returns an MPI error code, after which it is gone.
int give_request(MpiOperation& operation, MPI_Request* request);

}  // namespace plait::plugin

namespace plait::plugin::binding {

// Waiting in the host costs more than the operation itself where that is small: a wait for this thread's latest one
// begins with turns of our own.
int wait(MPI_Request* request, MPI_Status* status);

// The host's; PLAIT_RECORD sees in them what the program waits for.
int waitall(int count, MPI_Request requests[], MPI_Status statuses[]);
int waitany(int count, MPI_Request requests[], int* index, MPI_Status* status);
int waitsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]);
int test(MPI_Request* request, int* flag, MPI_Status* status);
int testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status);
int testsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]);

}  // namespace plait::plugin::binding
