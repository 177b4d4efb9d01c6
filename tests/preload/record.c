/* A step that PLAIT_RECORD is to find: two operations of two communicators, one waited for by MPI_Waitall and one by
 * MPI_Wait, a persistent one that MPI_Testsome finds complete, a sum that blocks and a barrier, after calls that do not
 * repeat. record_check reads what was written. */
#include <mpi.h>

#include "tests/persistent_form.h"

enum { steps = 200, ints = 1024 };
static int values[64 * ints], results[64 * ints], gathered[64 * ints];

static void compute(double seconds) {
  for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
  }
}

static void iterate(MPI_Comm half, MPI_Request* gather) {
  MPI_Request first = MPI_REQUEST_NULL, second = MPI_REQUEST_NULL;
  int one = 1, sum = 0;
  MPI_Iallreduce(values, results, ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &first);
  MPI_Ibcast(values, 2 * ints, MPI_INT, 0, half, &second);
  MPI_Start(gather);
  compute(200e-6);
  MPI_Status status;
  MPI_Waitall(1, &second, &status);
  compute(100e-6);
  MPI_Wait(&first, MPI_STATUS_IGNORE);
  for (int done = 0, index; done == 0;) MPI_Testsome(1, gather, &done, &index, &status);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 1; i < 12; ++i) MPI_Bcast(values, i, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Request gather;
  PLAIT_PERSISTENT(Allgather)(values, 16, MPI_INT, gathered, 16, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &gather);
  for (int i = 0; i < steps; ++i) iterate(half, &gather);
  MPI_Request_free(&gather);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
