/* A helper thread of ours in UCX beside the program's thread, below MPI_THREAD_MULTIPLE: a long non-blocking reduction
 * that the helper moves on, and of another communicator of the same ranks what the program's thread does meanwhile:
 * blocking reductions, starts of persistent ones, and the set-up of new communicators.
 *   helper_and_program [rounds]
 * PLAIT_PROGRESS=thread, PLAIT_CHANNELS=ucx. Two threads in a worker at once end the process (tl/ucx/rail_worker.h).
 * Prints "helper_and_program: right over ucx".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Open MPI 4.1 has MPI 4.0's persistent collectives as an extension. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

enum { big = 1 << 19, small = 32 << 10, calls = 6 };

static int rank, ranks, wrong;

static void give(double* values, int count, int step) {
  for (int i = 0; i < count; ++i) values[i] = rank * 3 + step + i % 5;
}

static void take(const double* values, int count, int step) {
  for (int i = 0; i < count; ++i) wrong += values[i] != 3.0 * ranks * (ranks - 1) / 2 + ranks * (step + i % 5);
}

static void reduce(double* given, double* taken, int step, MPI_Comm comm) {
  give(given, small, step);
  MPI_Allreduce(given, taken, small, MPI_DOUBLE, MPI_SUM, comm);
  take(taken, small, step);
}

int main(int count, char** arguments) {
  int provided = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = count > 1 ? atoi(arguments[1]) : 10;
  double *s = malloc(big * sizeof *s), *d = malloc(big * sizeof *d);
  double *x = malloc(small * sizeof *x), *y = malloc(small * sizeof *y);
  double *p = malloc(small * sizeof *p), *q = malloc(small * sizeof *q);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  reduce(x, y, 0, other);
  const char* (*last_channels)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "plait_last_channels");
  const char* channels = last_channels != NULL ? last_channels() : "";
  MPI_Request persistent;
  PLAIT_PERSISTENT(Allreduce)(p, q, small, MPI_DOUBLE, MPI_SUM, other, MPI_INFO_NULL, &persistent);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request request;
    give(s, big, round);
    MPI_Iallreduce(s, d, big, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    give(p, small, round);
    MPI_Start(&persistent);
    for (int call = 0; call < calls; ++call) reduce(x, y, call, other);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    take(q, small, round);
    MPI_Comm made;
    MPI_Comm_dup(other, &made);
    reduce(x, y, round, made);
    MPI_Comm_free(&made);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    take(d, big, round);
  }
  MPI_Request_free(&persistent);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("helper_and_program: %s over %s\n", all == 0 ? "right" : "wrong", channels);
  MPI_Comm_free(&other);
  MPI_Finalize();
  return all != 0;
}
