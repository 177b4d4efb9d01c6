/* A job whose ranks were given different tuning tables: PLAIT_TABLE is argv[1] on rank 2 (nothing: unset). Prints what
 * carried its tenth allreduce on each rank. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_used.h"

/* Open MPI's name and MPICH's. */
static const char* own_rank(void) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank != NULL ? rank : getenv("PMI_RANK");
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0, right = 1;
  if (own_rank() != NULL && atoi(own_rank()) == 2) {
    if (argc > 1)
      setenv("PLAIT_TABLE", argv[1], 1);
    else
      unsetenv("PLAIT_TABLE");
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int call = 0; call < 10; ++call) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= sum == ranks * (ranks - 1) / 2;
  }
  printf("rank %d %s %s\n", rank, plan_used(), right ? "right" : "wrong");
  MPI_Finalize();
  return !right;
}
