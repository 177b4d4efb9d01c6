#include "plugin/cooperation.h"

#include "plugin/host.h"

namespace plait::plugin {

namespace {

int meet(MPI_Comm comm, bool comes) {
  const int mine = comes ? 1 : 0;
  int all = 0;
  const int error = host().allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  if (error != MPI_SUCCESS) return error;
  return all != 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

}  // namespace

int meet_all(MPI_Comm comm) { return meet(comm, true); }

void withdraw(MPI_Comm comm) noexcept { static_cast<void>(meet(comm, false)); }

Status go_on_together(MPI_Comm comm, const Status& mine) noexcept {
  if (mine.ok()) return meet_all(comm) == MPI_SUCCESS ? Status() : Status(Code::unavailable, "a rank failed");
  withdraw(comm);
  return {mine.code(), "out of memory"};
}

int gather_all(const void* mine, int bytes, void* all, MPI_Comm comm) {
  if (const int error = meet_all(comm); error != MPI_SUCCESS) return error;
  return host().allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
}

int tell_all(void* text, int bytes, MPI_Comm comm) {
  if (const int error = meet_all(comm); error != MPI_SUCCESS) return error;
  return host().bcast(text, bytes, MPI_BYTE, 0, comm);
}

int reduce_all(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (const int error = meet_all(comm); error != MPI_SUCCESS) return error;
  return host().allreduce(mine, all, count, type, op, comm);
}

}  // namespace plait::plugin
