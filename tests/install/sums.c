/* A program that knows nothing of Plait: short and long sums, often enough that trials settle. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { longest = 1 << 15, calls_at_most = 800 };
  int rank, ranks, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double* in = malloc(longest * sizeof *in);
  double* out = malloc(longest * sizeof *out);
  for (int i = 0; i < longest; ++i) in[i] = rank + i;
  for (int count = 1; count <= longest; count *= longest)
    for (int call = 0; call < (count == 1 ? calls_at_most : calls_at_most / 8); ++call) {
      out[count - 1] = -1;
      MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      wrong += out[count - 1] != ranks * (count - 1) + ranks * (ranks - 1) / 2;
    }
  if (rank == 0) printf("%d wrong\n", wrong);
  free(in);
  free(out);
  MPI_Finalize();
  return wrong != 0;
}
