/* The first call of a communicator and its tenth, one on MPI_COMM_SELF and one on an inter-communicator: prints what
 * carried each. A report of the job holds: 10 allreduces on all ranks, the 8 last of them by a plan. With an argument
 * MPI is started by MPI_Init_thread. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "plan_used.h"

static int sum_is_right(MPI_Comm comm) {
  int rank = 0, ranks = 0, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum == ranks * (ranks - 1) / 2;
}

static MPI_Comm make_inter(int rank, int ranks) {
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < ranks / 2 ? ranks / 2 : 0, 1, &inter);
  MPI_Comm_free(&half);
  return inter;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, right = 1, provided = 0;
  if (argc > 1)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < 10; ++call) {
    right &= sum_is_right(MPI_COMM_WORLD);
    if (rank == 0 && (call == 0 || call == 9)) printf("call %d %s\n", call, plan_used());
  }
  right &= sum_is_right(MPI_COMM_SELF);
  if (rank == 0) printf("self %s\n", plan_used());
  if (ranks > 1) {
    MPI_Comm inter = make_inter(rank, ranks);
    int mine = 1, others = 0, remote = 0;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&mine, &others, 1, MPI_INT, MPI_SUM, inter);
    right &= others == remote;
    if (rank == 0) printf("inter %s\n", plan_used());
    MPI_Comm_free(&inter);
  }
  if (!right)
    printf("wrong\n");
  else if (rank == 0)
    printf("right\n");
  MPI_Finalize();
  return !right;
}
