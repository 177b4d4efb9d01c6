#include "plugin/cooperation.h"

#include "plugin/host.h"

namespace plait::plugin {

int meet_all(MPI_Comm comm) { return host().barrier(comm); }

int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm) {
  return host().allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
}

int tell_all(void* text, int bytes, MPI_Comm comm) { return host().bcast(text, bytes, MPI_BYTE, 0, comm); }

int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return host().allreduce(mine, all, count, type, op, comm);
}

}  // namespace plait::plugin
