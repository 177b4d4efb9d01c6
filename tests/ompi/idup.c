/* MPI_Comm_idup beside other collectives on the same communicator: Open MPI makes its own from within its progress,
 * which comes at any place among the program's, another on each rank. Prints "idup: right". */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { rounds = 100, set_up_calls = 12 };

static void check(int right, const char* what, int round) {
  if (right) return;
  fprintf(stderr, "idup: wrong: %s in round %d\n", what, round);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void one_round(MPI_Comm comm, int rank, int ranks, int round) {
  MPI_Comm duplicate;
  MPI_Request requests[2];
  int mine = rank + round, posted = -1, one = 1, all = 0;
  if (round % ranks == rank) usleep(300);
  MPI_Comm_idup(comm, &duplicate, &requests[0]);
  MPI_Iallreduce(&mine, &posted, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
  if (round % 3 == 0) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check(posted == ranks * (ranks - 1) / 2 + ranks * round, "the posted sum", round);
  check(all == ranks, "the other sum", round);
  MPI_Barrier(duplicate);
  MPI_Comm_free(&duplicate);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < set_up_calls; ++i) MPI_Barrier(comm);
  for (int round = 0; round < rounds; ++round) one_round(comm, rank, ranks, round);
  MPI_Comm_free(&comm);
  if (rank == 0) printf("idup: right\n");
  MPI_Finalize();
  return 0;
}
