/* A job that starts two processes more, talks to them across the inter-communicator and in one merged of it, and parts.
 * What is merged is the host's, whatever the other job has and has set; what is split off it within one job is not.
 *   mpirun -n N spawn COMMAND [ARGUMENT]...    COMMAND: this one, perhaps by `env` */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "tests/preload/plan_used.h"

enum { children = 2, calls = 10 };

enum expectation { by_plan, by_host, by_either };

static int sums_are_right(MPI_Comm comm, enum expectation expected) {
  int rank, ranks, right = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < calls; ++call) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    right &= sum == ranks * (ranks - 1) / 2;
  }
  right &= expected == by_either || accelerated() == (expected == by_plan);
  if (!right) fprintf(stderr, "rank %d of %d: wrong, or not as expected: %s\n", rank, ranks, plan_used());
  return right;
}

static int across_is_right(MPI_Comm inter) {
  int remote, mine = 1, sum = 0;
  MPI_Comm_remote_size(inter, &remote);
  for (int call = 0; call < 5; ++call) MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
  MPI_Barrier(inter);
  return sum == remote;
}

int main(int argc, char** argv) {
  MPI_Comm family, merged, copy, own;
  int rank, right = 1, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&family);
  const int is_child = family != MPI_COMM_NULL;
  const enum expectation alone = is_child ? by_either : by_plan;
  right &= sums_are_right(MPI_COMM_WORLD, alone);
  if (!is_child)
    MPI_Comm_spawn(argv[1], argc > 2 ? &argv[2] : MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &family,
                   MPI_ERRCODES_IGNORE);
  right &= across_is_right(family);
  MPI_Intercomm_merge(family, is_child, &merged);
  right &= sums_are_right(merged, by_host);
  MPI_Comm_dup(merged, &copy);
  right &= sums_are_right(copy, by_host);
  MPI_Comm_free(&copy);
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_split(merged, is_child, rank, &own);
  right &= sums_are_right(own, alone);
  MPI_Comm_free(&own);
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, merged);
  if (rank == 0) printf("spawn: %s\n", all ? "right" : "wrong");
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&family);
  right &= sums_are_right(MPI_COMM_WORLD, alone);
  MPI_Finalize();
  return !(right && all);
}
