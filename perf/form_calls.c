/* Times of an allreduce in its three forms, each waited for at once: for each size the slowest rank's nanoseconds a
 * call, blocking, non-blocking and persistent, the median of rounds in turn. Then what MPI_Start and MPI_Wait of the
 * program's own persistent message to nobody take while it has persistent collectives. One line of JSON each.
 *   mpirun -n N [-x LD_PRELOAD=libplait.so] form_calls [most bytes] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum { forms = 3, rounds = 21, largest = 16 << 20, warm_up = 20 };

static double in[largest / sizeof(double)], out[largest / sizeof(double)];
static MPI_Request persistent;

static void call(int form, int count) {
  MPI_Request request;
  switch (form) {
    case 0:
      MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      break;
    case 1:
      MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    default:
      MPI_Start(&persistent);
      MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  }
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double nanoseconds_a_call(int form, int count, int calls) {
  double mine, slowest;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(form, count);
  mine = (MPI_Wtime() - begin) / calls * 1e9;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/* Rounds of about 20 ms. */
static int calls_a_round(int count) {
  const double one = nanoseconds_a_call(2, count, 10);
  const int calls = (int)(2e7 / one);
  return calls < 1 ? 1 : calls > 20000 ? 20000 : calls;
}

static void own_message(int rank) {
  static double times[rounds];
  MPI_Request request;
  MPI_Send_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < 20000; ++i) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    times[round] = (MPI_Wtime() - begin) / 20000 * 1e9;
  }
  qsort(times, rounds, sizeof times[0], ascending);
  if (rank == 0) printf("{\"own message\": %.1f}\n", times[rounds / 2]);
  MPI_Request_free(&request);
}

int main(int argc, char** argv) {
  static double times[forms][rounds];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int most = argc > 1 ? atoi(argv[1]) : 1 << 20;
  own_message(rank);
  for (int bytes = 8; bytes <= most && bytes <= largest; bytes *= bytes < 1 << 20 ? 16 : 4) {
    const int count = bytes / (int)sizeof(double);
    PERSISTENT(Allreduce)(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    for (int form = 0; form < forms; ++form)
      for (int i = 0; i < warm_up; ++i) call(form, count);
    int calls = calls_a_round(count);
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; ++round)
      for (int form = 0; form < forms; ++form) times[form][round] = nanoseconds_a_call(form, count, calls);
    for (int form = 0; form < forms; ++form) qsort(times[form], rounds, sizeof times[form][0], ascending);
    if (rank == 0)
      printf("{\"bytes\": %d, \"blocking\": %.0f, \"nonblocking\": %.0f, \"persistent\": %.0f}\n", bytes,
             times[0][rounds / 2], times[1][rounds / 2], times[2][rounds / 2]);
    if (bytes == 8) own_message(rank);
  }
  MPI_Finalize();
  return 0;
}
