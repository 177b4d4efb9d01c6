// A PMPI tool that breaks one element of rank 1's integer allreduces, so that bench.sh sees a wrong result found.
#include <mpi.h>

#include <cstdint>

extern "C" __attribute__((visibility("default"))) int MPI_Allreduce(const void* send, void* receive, int count,
                                                                    MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int code = PMPI_Allreduce(send, receive, count, type, op, comm);
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 1 && type == MPI_INT32_T && count > 2) ++static_cast<std::int32_t*>(receive)[2];
  return code;
}
