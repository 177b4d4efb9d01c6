#include "plugin/cooperation.h"

#include <sched.h>

#include "core/fiber.h"
#include "plugin/host.h"

namespace plait {

int meet_all(MPI_Comm comm) {
  if (!Fiber::inside()) return host().barrier(comm);
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = host().ibarrier(comm, &request);
  return error == MPI_SUCCESS ? wait_for(request) : error;
}

int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm) {
  if (!Fiber::inside()) return host().allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = host().iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request);
  return error == MPI_SUCCESS ? wait_for(request) : error;
}

int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (!Fiber::inside()) return host().allreduce(mine, all, count, type, op, comm);
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = host().iallreduce(mine, all, count, type, op, comm, &request);
  return error == MPI_SUCCESS ? wait_for(request) : error;
}

int wait_for(MPI_Request& request) { return wait_for({&request, 1}); }

int wait_for(std::span<MPI_Request> requests) {
  const int count = static_cast<int>(requests.size());
  if (!Fiber::inside()) return PMPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  while (true) {
    int done = 0;
    const int error = PMPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS || done != 0) return error;
    Fiber::pause();
  }
}

void let_others_go_on() {
  if (Fiber::inside())
    Fiber::pause();
  else
    sched_yield();
}

}  // namespace plait
