/* Times of calls, whatever binding they take: for each case the slowest rank's time a call, as lines "collective bytes
 * nanoseconds". Of the rounds the fastest tenth's slowest: what else runs on the machine only ever adds.
 *   mpirun -n N binding_calls [most bytes] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rounds = 31, largest = 1 << 20, warm_up = 20 };

static double in[largest / sizeof(double)], out[largest / sizeof(double)];

static void call_barrier(int count) {
  (void)count;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void call_bcast(int count) { MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void call_allreduce(int count) { MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void call_iallreduce(int count) {
  MPI_Request request;
  MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

struct Case {
  const char* name;
  void (*call)(int count);
  int bytes, calls_a_round;
};
static const struct Case cases[] = {
    {"barrier", call_barrier, 0, 20000},
    {"allreduce", call_allreduce, 8, 20000},
    {"allreduce", call_allreduce, 64 << 10, 1000},
    {"allreduce", call_allreduce, largest, 40},
    {"bcast", call_bcast, 8, 20000},
    {"bcast", call_bcast, 64 << 10, 1000},
    {"bcast", call_bcast, largest, 40},
    {"iallreduce", call_iallreduce, 8, 20000},
    {"iallreduce", call_iallreduce, largest, 40},
};

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double nanoseconds_a_call(const struct Case* one) {
  const int count = one->bytes / (int)sizeof(double);
  double mine, slowest;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int call = 0; call < one->calls_a_round; ++call) one->call(count);
  mine = (MPI_Wtime() - begin) / one->calls_a_round * 1e9;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  static double times[rounds];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int most = argc > 1 ? atoi(argv[1]) : largest;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (cases[i].bytes > most) continue;
    for (int call = 0; call < warm_up; ++call) cases[i].call(cases[i].bytes / (int)sizeof(double));
    for (int round = 0; round < rounds; ++round) times[round] = nanoseconds_a_call(&cases[i]);
    qsort(times, rounds, sizeof times[0], ascending);
    if (rank == 0) printf("%s %d %.1f\n", cases[i].name, cases[i].bytes, times[rounds / 10]);
  }
  MPI_Finalize();
  return 0;
}
