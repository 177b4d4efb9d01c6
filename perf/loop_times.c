/* What a whole loop of calls takes, from its first call on: of each collective and size a loop of so many calls on
 * MPI_COMM_WORLD, whose ranks begin together. Nothing is called before of that kind and size; what a job's first
 * collectives cost has gone by (perf/first_calls). Prints a line of JSON each: the longest time of any rank, in
 * seconds.
 *
 *   mpirun -n 8 loop_times [--each] CALLS COLLECTIVES SIZES [MOST_BYTES]
 *
 * --each: what each call takes as well, by the clock of the rank that took longest for it (a look at the clock a call).
 * COLLECTIVES and SIZES are lists; a size counts as in `plait bench`. Loops that would move more than MOST_BYTES on a
 * rank (2 GiB) are left out. Exit status 2 for a command line that is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static char *in, *out;
static double* each; /* of the loop's calls; NULL: only the loop is timed */

static void call(const char* name, size_t bytes) {
  const int count = (int)bytes, words = (int)(bytes / sizeof(int));
  if (strcmp(name, "allreduce") == 0) MPI_Allreduce(in, out, words, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (strcmp(name, "bcast") == 0) MPI_Bcast(in, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (strcmp(name, "reduce") == 0) MPI_Reduce(in, out, words, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (strcmp(name, "allgather") == 0) MPI_Allgather(in, count, MPI_CHAR, out, count, MPI_CHAR, MPI_COMM_WORLD);
  if (strcmp(name, "gather") == 0) MPI_Gather(in, count, MPI_CHAR, out, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (strcmp(name, "scatter") == 0) MPI_Scatter(in, count, MPI_CHAR, out, count, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (strcmp(name, "alltoall") == 0) MPI_Alltoall(in, count, MPI_CHAR, out, count, MPI_CHAR, MPI_COMM_WORLD);
  if (strcmp(name, "reduce_scatter") == 0)
    MPI_Reduce_scatter_block(in, out, words / ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* What a call has on a rank, both ways together. */
static size_t held(const char* name, size_t bytes) {
  const int by_rank = strcmp(name, "allgather") == 0 || strcmp(name, "gather") == 0 || strcmp(name, "scatter") == 0 ||
                      strcmp(name, "alltoall") == 0;
  return by_rank ? (size_t)ranks * bytes : bytes;
}

static double longest_of(double seconds) {
  double longest = 0;
  PMPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return longest;
}

static void time_each(const char* name, size_t bytes, int calls) {
  double before = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    call(name, bytes);
    const double now = MPI_Wtime();
    each[i] = now - before;
    before = now;
  }
}

static void print_each(int calls) {
  printf(", \"each\": [");
  for (int i = 0; i < calls; ++i) printf("%s%.9f", i == 0 ? "" : ", ", each[i]);
  printf("]");
}

static void time_loop(const char* name, size_t bytes, int calls) {
  PMPI_Barrier(MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (each != NULL)
    time_each(name, bytes, calls);
  else
    for (int i = 0; i < calls; ++i) call(name, bytes);
  const double seconds = longest_of(MPI_Wtime() - begin);
  if (each != NULL) PMPI_Reduce(rank == 0 ? MPI_IN_PLACE : each, each, calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("{\"collective\": \"%s\", \"bytes\": %zu, \"calls\": %d, \"seconds\": %.9f", name, bytes, calls, seconds);
  if (each != NULL) print_each(calls);
  printf("}\n");
  fflush(stdout);
}

/* Of a list; 0: there is none, or what stands there is no size. */
static size_t next_size(char** list) {
  char* end = *list;
  const size_t size = **list >= '0' && **list <= '9' ? strtoull(*list, &end, 10) : 0;
  *list = *end == ',' ? end + 1 : end;
  return *end == ',' || *end == '\0' ? size : 0;
}

static int known(const char* name, size_t length) {
  static const char* const names[] = {"allreduce", "bcast",   "reduce",   "allgather",
                                      "gather",    "scatter", "alltoall", "reduce_scatter"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) return 1;
  return 0;
}

/* What is wrong with the command line; NULL: nothing. */
static const char* complaint(int argc, char** argv) {
  if (argc < 4 || atoi(argv[1]) <= 0) return "expected a number of calls, collectives and sizes";
  for (const char* name = argv[2];; ++name) {
    const size_t length = strcspn(name, ",");
    if (!known(name, length)) return "expected other collectives";
    if (*(name += length) == '\0') break;
  }
  for (char* sizes = argv[3];;) {
    if (next_size(&sizes) == 0) return "expected sizes in bytes";
    if (*sizes == '\0') return NULL;
  }
}

/* Sets a communicator up for short and for long calls, whoever runs it: by other calls than those that are measured. */
static void warm_up(void) {
  enum { numbers = 12000 }; /* a size class of its own */
  static long data[numbers];
  for (int i = 0; i < 20; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 10; ++i) MPI_Allreduce(MPI_IN_PLACE, data, numbers, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int wants_each = argc > 1 && strcmp(argv[1], "--each") == 0;
  argc -= wants_each;
  argv += wants_each;
  const char* wrong = complaint(argc, argv);
  if (wrong != NULL) {
    if (rank == 0) fprintf(stderr, "loop_times [--each] CALLS COLLECTIVES SIZES [MOST_BYTES]: %s\n", wrong);
    MPI_Finalize();
    return 2;
  }
  const int calls = atoi(argv[1]);
  const size_t most = argc > 4 ? strtoull(argv[4], NULL, 10) : (size_t)2 << 30;
  size_t largest = 0;
  for (char* sizes = argv[3]; *sizes != '\0';) {
    const size_t size = next_size(&sizes);
    largest = size > largest ? size : largest;
  }
  in = calloc((size_t)ranks, largest + 8);
  out = calloc((size_t)ranks, largest + 8);
  each = wants_each ? calloc((size_t)calls, sizeof *each) : NULL;
  if (in == NULL || out == NULL || (wants_each && each == NULL)) MPI_Abort(MPI_COMM_WORLD, 1);
  warm_up();
  for (char* name = strtok(argv[2], ","); name != NULL; name = strtok(NULL, ","))
    for (char* sizes = argv[3]; *sizes != '\0';) {
      const size_t size = next_size(&sizes);
      if (held(name, size) * (size_t)calls <= most) time_loop(name, size, calls);
    }
  free(in);
  free(out);
  free(each);
  MPI_Finalize();
  return 0;
}
