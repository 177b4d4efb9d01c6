// What waiting for a late rank costs: rank 0 comes to each broadcast some time after the others. Prints, for ranks that
// share its clock, how long after rank 0's call theirs ended (median, longest), and their processors' share of the
// wait. Usage: late_rank [seconds late, default 1] [broadcasts, default 5]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void be_late(double late) {
  const struct timespec pause = {(time_t)late, (long)((late - (double)(time_t)late) * 1e9)};
  nanosleep(&pause, NULL);
}

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double late = argc > 1 ? atof(argv[1]) : 1;
  const int calls = argc > 2 ? atoi(argv[2]) : 5;
  double called = 0, burnt = 0, begin = 0;
  double* lateness = malloc((size_t)calls * sizeof *lateness);
  for (int warm = 0; warm < 10; ++warm) MPI_Bcast(&called, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int call = 0; call < calls; ++call) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) be_late(late);
    begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (rank == 0) called = seconds(CLOCK_MONOTONIC);
    MPI_Bcast(&called, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    lateness[call] = seconds(CLOCK_MONOTONIC) - called;
    burnt += seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
  }
  qsort(lateness, (size_t)calls, sizeof *lateness, ascending);
  double mine[3] = {lateness[calls / 2] * 1e6, lateness[calls - 1] * 1e6, 100 * burnt / (late * calls)};
  double most[3];
  if (rank == 0) mine[0] = mine[1] = mine[2] = 0;
  MPI_Reduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf(
        "%d ranks, rank 0 late by %g s: the others end %.0f us after it comes (longest %.0f), with %.2f %% of a core\n",
        ranks, late, most[0], most[1], most[2]);
  free(lateness);
  MPI_Finalize();
  return 0;
}
