/* A program that is made with Plait's headers and library as they are installed. */
#include <stdio.h>
#include <string.h>

#include "plait/plait_mpi.h"

int main(int argc, char** argv) {
  int rank, sum = 0;
  const int one = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int code = plait_set_plan(MPI_COMM_WORLD, "AR.1");
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int right = code == MPI_SUCCESS && sum == 3 && strncmp(plait_last_plan(), "AR.1", 4) == 0;
  if (rank == 0) printf("version %s, plan %s, sum %d: %s\n", plait_version(), plait_last_plan(), sum, right ? "right" : "wrong");
  MPI_Finalize();
  return !right;
}
