/* What a job's first collectives cost: allreduces, of one double where nothing else is asked for, each begun by all
 * ranks at the same time, on MPI_COMM_WORLD and then on duplicates of it. Prints JSON: of each call the longest time of
 * any rank, in microseconds, and the processor time of all ranks together. The nodes' clocks must agree to a
 * millisecond or so. Calls begin at multiples of a raster, 0.4 s: several times what any of them takes. Where many
 * ranks share a core it has to be longer.
 *
 *   mpirun -n 16 first_calls                             the host
 *   mpirun -n 16 -x LD_PRELOAD=libplait.so first_calls   with Plait, which sets a communicator up at its third call
 *   mpirun -n 16 first_calls one                         a whole job with one call, for a clock outside
 *   mpirun -n 16 first_calls 1048576                     calls of so many bytes
 *   mpirun -n 512 first_calls 8 10                       a raster of 10 s
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { calls = 4, communicators = 2 };

static double raster_s = 0.4;

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A barrier would be a collective itself, and open the connections that the first one needs. Messages of the library
 * that are still under way have a raster's time to arrive. */
static void wait_for_next_beat(void) {
  const long long beat = (long long)(now(CLOCK_REALTIME) / raster_s + 0.5) + 1;
  const double until = (double)beat * raster_s;
  struct timespec wake = {(time_t)until, 0};
  wake.tv_nsec = (long)((until - (double)wake.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wake, NULL) != 0) {
  }
}

struct Cost {
  double wall_us[calls], processor_us[calls];
};

static void time_calls(MPI_Comm comm, int count, struct Cost* cost) {
  double *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
  for (int call = 0; call < calls; ++call) {
    wait_for_next_beat();
    const double begin = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
    cost->wall_us[call] = (now(CLOCK_MONOTONIC) - begin) * 1e6;
    cost->processor_us[call] = (now(CLOCK_PROCESS_CPUTIME_ID) - processor) * 1e6;
  }
  free(in);
  free(out);
}

static void print_list(const char* name, const double* values) {
  printf("\"%s\": [", name);
  for (int call = 0; call < calls; ++call) printf("%s%.0f", call > 0 ? ", " : "", values[call]);
  printf("]");
}

static void report(const char* name, double start_us, const struct Cost* mine) {
  struct Cost all;
  double longest_start_us = 0;
  int rank = 0, ranks = 1;
  MPI_Reduce(mine->wall_us, all.wall_us, calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(mine->processor_us, all.processor_us, calls, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&start_us, &longest_start_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != 0) return;
  printf("{\"benchmark\": \"first_calls\", \"communicator\": \"%s\", \"ranks\": %d, \"start_us\": %.0f, ", name, ranks,
         longest_start_us);
  print_list("wall_us", all.wall_us);
  printf(", ");
  print_list("processor_us", all.processor_us);
  printf("}\n");
}

int main(int argc, char** argv) {
  struct Cost world, duplicates[communicators];
  const double begin = now(CLOCK_MONOTONIC);
  MPI_Init(&argc, &argv);
  const double start_us = (now(CLOCK_MONOTONIC) - begin) * 1e6;
  if (argc > 1 && strcmp(argv[1], "one") == 0) {
    double in = 1, out = 0;
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  const int bytes = argc > 1 ? atoi(argv[1]) : 8, count = bytes > 8 ? bytes / 8 : 1;
  if (argc > 2) raster_s = atof(argv[2]);
  time_calls(MPI_COMM_WORLD, count, &world);
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    time_calls(comm, count, &duplicates[i]);
    MPI_Comm_free(&comm);
  }
  report("MPI_COMM_WORLD", start_us, &world);
  for (int i = 0; i < communicators; ++i) report("duplicate", start_us, &duplicates[i]);
  MPI_Finalize();
  return 0;
}
