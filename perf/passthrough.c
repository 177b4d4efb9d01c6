/* What the preloaded plugin adds to a call that it hands to the host: an allreduce of one double on MPI_COMM_SELF
 * through the program's symbol, against the MPI library's own function, in turn, in one process. Prints JSON; medians
 * over rounds.
 *
 *   LD_PRELOAD=libplait.so mpirun -n 1 passthrough        the plugin's cost
 *   mpirun -n 1 passthrough                               the method's own error
 *   LD_PRELOAD=libplait.so mpirun -n 2 passthrough world  the same on MPI_COMM_WORLD, where the call is accelerated
 *   mpiexec.mpich -n 1 passthrough_mpich ...              the same with MPICH
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rounds = 201, calls_a_round = 20000 };

typedef int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static double nanoseconds_a_call(Allreduce allreduce, MPI_Comm comm) {
  double in = 1, out = 0;
  const double begin = MPI_Wtime();
  for (int call = 0; call < calls_a_round; ++call) allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);
  return (MPI_Wtime() - begin) / calls_a_round * 1e9;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, rounds, sizeof *values, ascending);
  return values[rounds / 2];
}

/* The one behind all interposed functions. */
static Allreduce library_function(void) {
  static const char* const names[] = {"libmpi.so.40", "libmpi.so", "libmpich.so.12"};
  void* library = NULL;
  for (int i = 0; i < 3 && library == NULL; ++i) library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
  return library != NULL ? (Allreduce)dlsym(library, "PMPI_Allreduce") : NULL;
}

int main(int argc, char** argv) {
  static double through[rounds], direct[rounds];
  MPI_Init(&argc, &argv);
  const MPI_Comm comm = argc > 1 && strcmp(argv[1], "world") == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF;
  const Allreduce library = library_function();
  if (library == NULL) {
    fprintf(stderr, "passthrough: the MPI library is not a shared one\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  for (int round = 0; round < rounds; ++round) {
    through[round] = nanoseconds_a_call(MPI_Allreduce, comm);
    direct[round] = nanoseconds_a_call(library, comm);
  }
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(comm, &ranks);
  if (rank == 0) {
    const double with = median(through), without = median(direct);
    printf("{\"benchmark\": \"passthrough\", \"ranks\": %d, ", ranks);
    printf("\"through_ns\": %.1f, \"direct_ns\": %.1f, \"added_ns\": %.1f}\n", with, without, with - without);
  }
  MPI_Finalize();
  return 0;
}
