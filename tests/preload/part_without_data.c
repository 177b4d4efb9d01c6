/* A type whose extent ends or begins in a part without data: its elements do not lie side by side, though Open MPI's
 * MPI_Pack takes them so. Each rank's block is one element, as the host itself gets by with. */
#include <mpi.h>
#include <stdio.h>

enum { most_ranks = 16, unset = -1 };

static int wrong = 0;

static void check(const char* what, const double* found, const double* wanted, int count) {
  for (int i = 0; i < count; ++i)
    if (found[i] != wanted[i]) {
      printf("part_without_data: wrong: %s, double %d: %g, not %g\n", what, i, found[i], wanted[i]);
      wrong = 1;
      return;
    }
}

/* Two doubles, then room for a third one; or a double behind such room. */
static MPI_Datatype type_with_room(int in_front) {
  MPI_Datatype nothing, type;
  MPI_Type_contiguous(0, MPI_CHAR, &nothing);
  const int lengths[] = {in_front ? 1 : 2, 1};
  const MPI_Aint places[] = {in_front ? sizeof(double) : 0, in_front ? 0 : 3 * sizeof(double)};
  const MPI_Datatype types[] = {MPI_DOUBLE, nothing};
  MPI_Type_create_struct(2, lengths, places, types, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&nothing);
  return type;
}

static void try_type(int in_front, int rank, int ranks) {
  const int data = in_front ? 1 : 2, extent = in_front ? 2 : 3, begin = in_front ? 1 : 0;
  MPI_Datatype type = type_with_room(in_front);
  double sent[3 * most_ranks], received[3 * most_ranks], wanted[3 * most_ranks];
  for (int call = 0; call < 4; ++call) {
    for (int i = 0; i < extent * ranks; ++i) received[i] = wanted[i] = unset;
    for (int from = 0; from < ranks; ++from)
      for (int i = 0; i < data; ++i) wanted[from * extent + begin + i] = 10 * from + i;
    for (int i = 0; i < data; ++i) sent[i] = 10 * rank + i;
    MPI_Allgather(sent, data, MPI_DOUBLE, received, 1, type, MPI_COMM_WORLD);
    check("allgather", received, wanted, extent * ranks);

    for (int i = 0; i < extent * ranks; ++i) sent[i] = 100 * rank + i;
    for (int from = 0; from < ranks; ++from)
      for (int i = 0; i < data; ++i) wanted[from * data + i] = 100 * from + rank * extent + begin + i;
    MPI_Alltoall(sent, 1, type, received, data, MPI_DOUBLE, MPI_COMM_WORLD);
    check("alltoall", received, wanted, data * ranks);
  }
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks <= most_ranks)
    for (int in_front = 0; in_front < 2; ++in_front) try_type(in_front, rank, ranks);
  if (rank == 0 && !wrong) printf("part_without_data: right\n");
  MPI_Finalize();
  return wrong;
}
