/* A PMPI tool that shares nothing with Plait: how long each process was between the beginning of MPI_Init and the end
 * of MPI_Finalize, and how much of that in collectives. Preloaded alone, or before libplait.so, it measures the same.
 * Each process prints one line of JSON on standard error.
 *
 * Non-blocking collectives count with the call that posts them; a wait is no collective's alone. Open MPI's Fortran
 * bindings call C's PMPI_ functions, so that collectives called from Fortran itself are not seen. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double begin_s, collective_s;
static long calls;
static int depth; /* a collective that the MPI library makes of others counts once */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* For programs that call collectives in one thread at a time: the sums have no lock. */
#define LISTED(...) __VA_ARGS__
#define TIMED(Name, parameters, arguments)                           \
  __attribute__((visibility("default"))) int MPI_##Name parameters { \
    const double entered_s = depth++ == 0 ? now_s() : 0;             \
    const int code = PMPI_##Name arguments;                          \
    if (--depth == 0) {                                              \
      collective_s += now_s() - entered_s;                           \
      ++calls;                                                       \
    }                                                                \
    return code;                                                     \
  }
#define BOTH_FORMS(Name, name, parameters, arguments)  \
  TIMED(Name, (LISTED parameters), (LISTED arguments)) \
  TIMED(I##name, (LISTED parameters, MPI_Request * request), (LISTED arguments, request))

#define SEND const void *send, int send_count, MPI_Datatype send_type
#define SEND_V const void *send, const int send_counts[], const int send_at[], MPI_Datatype send_type
#define SEND_W const void *send, const int send_counts[], const int send_at[], const MPI_Datatype send_types[]
#define RECEIVE void *receive, int count, MPI_Datatype type
#define RECEIVE_V void *receive, const int counts[], const int at[], MPI_Datatype type
#define RECEIVE_W void *receive, const int counts[], const int at[], const MPI_Datatype types[]

BOTH_FORMS(Barrier, barrier, (MPI_Comm comm), (comm))
BOTH_FORMS(Bcast, bcast, (RECEIVE, int root, MPI_Comm comm), (receive, count, type, root, comm))
BOTH_FORMS(Gather, gather, (SEND, RECEIVE, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, count, type, root, comm))
BOTH_FORMS(Gatherv, gatherv, (SEND, RECEIVE_V, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, counts, at, type, root, comm))
BOTH_FORMS(Scatter, scatter, (SEND, RECEIVE, int root, MPI_Comm comm),
           (send, send_count, send_type, receive, count, type, root, comm))
BOTH_FORMS(Scatterv, scatterv, (SEND_V, RECEIVE, int root, MPI_Comm comm),
           (send, send_counts, send_at, send_type, receive, count, type, root, comm))
BOTH_FORMS(Allgather, allgather, (SEND, RECEIVE, MPI_Comm comm),
           (send, send_count, send_type, receive, count, type, comm))
BOTH_FORMS(Allgatherv, allgatherv, (SEND, RECEIVE_V, MPI_Comm comm),
           (send, send_count, send_type, receive, counts, at, type, comm))
BOTH_FORMS(Alltoall, alltoall, (SEND, RECEIVE, MPI_Comm comm),
           (send, send_count, send_type, receive, count, type, comm))
BOTH_FORMS(Alltoallv, alltoallv, (SEND_V, RECEIVE_V, MPI_Comm comm),
           (send, send_counts, send_at, send_type, receive, counts, at, type, comm))
BOTH_FORMS(Alltoallw, alltoallw, (SEND_W, RECEIVE_W, MPI_Comm comm),
           (send, send_counts, send_at, send_types, receive, counts, at, types, comm))
BOTH_FORMS(Reduce, reduce, (const void* send, RECEIVE, MPI_Op op, int root, MPI_Comm comm),
           (send, receive, count, type, op, root, comm))
BOTH_FORMS(Allreduce, allreduce, (const void* send, RECEIVE, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm))
BOTH_FORMS(Reduce_scatter, reduce_scatter,
           (const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (send, receive, counts, type, op, comm))
BOTH_FORMS(Reduce_scatter_block, reduce_scatter_block, (const void* send, RECEIVE, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm))
BOTH_FORMS(Scan, scan, (const void* send, RECEIVE, MPI_Op op, MPI_Comm comm), (send, receive, count, type, op, comm))
BOTH_FORMS(Exscan, exscan, (const void* send, RECEIVE, MPI_Op op, MPI_Comm comm),
           (send, receive, count, type, op, comm))

__attribute__((visibility("default"))) int MPI_Init(int* argc, char*** argv) {
  begin_s = now_s();
  return PMPI_Init(argc, argv);
}

__attribute__((visibility("default"))) int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  begin_s = now_s();
  return PMPI_Init_thread(argc, argv, required, provided);
}

__attribute__((visibility("default"))) int MPI_Finalize(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int code = PMPI_Finalize();
  char line[160];
  const int length = snprintf(
      line, sizeof line,
      "{\"collective_time\": {\"rank\": %d, \"seconds\": %.6f, \"collective_seconds\": %.6f, \"calls\": %ld}}\n", rank,
      now_s() - begin_s, collective_s, calls);
  fwrite(line, 1, (size_t)length, stderr);
  return code;
}
