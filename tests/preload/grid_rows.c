/* Allreduces on the rows of a process grid, as programs make them: 4 x 2 x ... ranks, one dimension is kept.
 *   grid_rows DIMENSION [WAY]      WAY: cart (MPI_Cart_sub, the default) or split (MPI_Comm_split) or axes (the API)
 * Where a report is asked for, it has what `plait advise` needs. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1 << 18, calls = 8 };
static int in[count], out[count];

typedef int (*AllreduceAxes)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, int, const int*, int, const int*);

static MPI_Comm row(const char* way, const int dims[2], int dimension, int rank) {
  MPI_Comm made = MPI_COMM_NULL;
  if (strcmp(way, "cart") == 0) {
    const int periods[2] = {0, 0}, remain[2] = {dimension == 0, dimension == 1};
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Cart_sub(cart, remain, &made);
    MPI_Comm_free(&cart);
  } else {
    MPI_Comm_split(MPI_COMM_WORLD, dimension == 0 ? rank % dims[1] : rank / dims[1], rank, &made);
  }
  return made;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int dimension = argc > 1 ? atoi(argv[1]) : 0;
  const char* way = argc > 2 ? argv[2] : "cart";
  const int dims[2] = {ranks / 2, 2};
  for (int i = 0; i < count; ++i) in[i] = 1;
  if (strcmp(way, "axes") == 0) {
    AllreduceAxes allreduce_axes = (AllreduceAxes)dlsym(RTLD_DEFAULT, "plait_allreduce_axes");
    for (int call = 0; call < calls; ++call)
      allreduce_axes(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, 2, dims, 1, &dimension);
  } else {
    MPI_Comm comm = row(way, dims, dimension, rank);
    for (int call = 0; call < calls; ++call) MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
  }
  for (int i = 0; i < count; ++i) wrong += out[i] != dims[dimension];
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("grid_rows: %d wrong\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
