/* A job that starts two processes more, talks to them across the inter-communicator and in one merged of it, and parts.
 *   mpirun -n N spawn PROGRAM    PROGRAM: this one */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "tests/preload/plan_used.h"

enum { children = 2 };

static int sums_are_right(MPI_Comm comm, int expect_plan) {
  int rank, ranks, right = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < 5; ++call) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    right &= sum == ranks * (ranks - 1) / 2;
  }
  return right && (!expect_plan || accelerated());
}

static int across_is_right(MPI_Comm inter) {
  int remote, mine = 1, sum = 0;
  MPI_Comm_remote_size(inter, &remote);
  for (int call = 0; call < 5; ++call) MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Barrier(inter);
  return sum == remote;
}

int main(int argc, char** argv) {
  MPI_Comm family, merged;
  int rank, right = 1, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&family);
  const int is_child = family != MPI_COMM_NULL;
  right &= sums_are_right(MPI_COMM_WORLD, 1);
  if (!is_child)
    MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &family, MPI_ERRCODES_IGNORE);
  right &= across_is_right(family);
  MPI_Intercomm_merge(family, is_child, &merged);
  right &= sums_are_right(merged, 0);
  MPI_Comm_rank(merged, &rank);
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, merged);
  const char* plan = plan_used();
  if (rank == 0) printf("spawn: %s, merged by %s\n", all ? "right" : "wrong", plan);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&family);
  right &= sums_are_right(MPI_COMM_WORLD, 1);
  MPI_Finalize();
  return !(right && all);
}
