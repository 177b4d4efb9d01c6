/* All collectives of an MPI program on MPI_COMM_WORLD, timed call by call: for comparing what serves them (UCC's
 * transport layers under Open MPI's coll/ucc, Plait's bindings), a job each.
 *
 *   ucc_collectives [LONGEST_BYTES [SECONDS_A_ROW [NAME,...|all [SECONDS_A_SAMPLE]]]]
 *
 * Sizes go up by eight, the last one is the longest. Prints a line a collective and size: name, bytes (of the vector,
 * or of a rank's part), microseconds: the median and the least over the calls of the time of the slowest rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_samples = 400, most_calls = 2000 };

struct run {
  char *in, *out;
  int *counts, *places;
  int rank, ranks, bytes;
};

static void barrier(struct run* run) {
  (void)run;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(struct run* run) { MPI_Bcast(run->out, run->bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void allreduce(struct run* run) {
  MPI_Allreduce(run->in, run->out, run->bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce(struct run* run) {
  MPI_Reduce(run->in, run->out, run->bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allgather(struct run* run) {
  MPI_Allgather(run->in, run->bytes, MPI_BYTE, run->out, run->bytes, MPI_BYTE, MPI_COMM_WORLD);
}
static void allgatherv(struct run* run) {
  MPI_Allgatherv(run->in, run->bytes, MPI_BYTE, run->out, run->counts, run->places, MPI_BYTE, MPI_COMM_WORLD);
}
static void gather(struct run* run) {
  MPI_Gather(run->in, run->bytes, MPI_BYTE, run->out, run->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void gatherv(struct run* run) {
  MPI_Gatherv(run->in, run->bytes, MPI_BYTE, run->out, run->counts, run->places, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatter(struct run* run) {
  MPI_Scatter(run->in, run->bytes, MPI_BYTE, run->out, run->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatterv(struct run* run) {
  MPI_Scatterv(run->in, run->counts, run->places, MPI_BYTE, run->out, run->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void alltoall(struct run* run) {
  MPI_Alltoall(run->in, run->bytes, MPI_BYTE, run->out, run->bytes, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoallv(struct run* run) {
  MPI_Alltoallv(run->in, run->counts, run->places, MPI_BYTE, run->out, run->counts, run->places, MPI_BYTE,
                MPI_COMM_WORLD);
}
static void reduce_scatter_block(struct run* run) {
  MPI_Reduce_scatter_block(run->in, run->out, run->bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter(struct run* run) {
  int* elements = run->places + run->ranks;
  for (int rank = 0; rank < run->ranks; ++rank) elements[rank] = run->bytes / 4;
  MPI_Reduce_scatter(run->in, run->out, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*call)(struct run* run);
  int sized;
} collectives[] = {
    {"barrier", barrier, 0},
    {"bcast", bcast, 1},
    {"allreduce", allreduce, 1},
    {"reduce", reduce, 1},
    {"allgather", allgather, 1},
    {"allgatherv", allgatherv, 1},
    {"gather", gather, 1},
    {"gatherv", gatherv, 1},
    {"scatter", scatter, 1},
    {"scatterv", scatterv, 1},
    {"alltoall", alltoall, 1},
    {"alltoallv", alltoallv, 1},
    {"reduce_scatter", reduce_scatter, 1},
    {"reduce_scatter_block", reduce_scatter_block, 1},
};

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

/* How many calls make a sample: one of long calls, several of short ones. */
static int usual_calls(int bytes) { return bytes <= 1024 ? 20 : bytes <= 65536 ? 4 : 1; }

/* Seconds a call of that many after a barrier, as long as the slowest rank took. */
static double sample(struct run* run, int which, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) collectives[which].call(run);
  const double mine = (MPI_Wtime() - begin) / calls;
  double slowest = 0;
  PMPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return slowest;
}

/* Samples last that long at least: between two of them a network that is limited by a token bucket saves up for the
 * next one, which flatters whoever takes long there. */
static int calls_a_sample(struct run* run, int which, double seconds) {
  const int usual = usual_calls(run->bytes);
  for (int warm = 0; warm < 3 * usual; ++warm) collectives[which].call(run);
  const double wanted_calls = seconds / (sample(run, which, usual) + 1e-9) + 1; /* rank 0 knows */
  int calls = wanted_calls > most_calls ? most_calls : (int)wanted_calls;
  if (calls < usual) calls = usual;
  PMPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return calls;
}

static void time_row(struct run* run, int which, double seconds, double sample_seconds) {
  static double took[most_samples];
  const int calls = calls_a_sample(run, which, sample_seconds);
  int samples = 0, go_on = 1;
  const double until = MPI_Wtime() + seconds;
  while (go_on != 0 && samples < most_samples) {
    took[samples++] = sample(run, which, calls);
    go_on = MPI_Wtime() < until || samples < 5;
    PMPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  qsort(took, (size_t)samples, sizeof *took, ascending);
  if (run->rank == 0)
    printf("%-20s %10d %12.3f %12.3f\n", collectives[which].name, collectives[which].sized ? run->bytes : 0,
           took[samples / 2] * 1e6, took[0] * 1e6);
}

static int wanted(const char* names, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = names; names != NULL && at != NULL; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) return 1;
  }
  return names == NULL || strcmp(names, "all") == 0;
}

static int next_size(int bytes, int longest) {
  return bytes < longest && bytes > longest / 8 ? longest : bytes > longest / 8 ? longest + 1 : bytes * 8;
}

static void time_collective(struct run* run, int which, int longest, double seconds, double sample_seconds) {
  for (run->bytes = 8; run->bytes <= longest; run->bytes = next_size(run->bytes, longest)) {
    for (int rank = 0; rank < run->ranks; ++rank) run->counts[rank] = run->bytes, run->places[rank] = rank * run->bytes;
    time_row(run, which, seconds, sample_seconds);
    if (!collectives[which].sized) break;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct run run;
  MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
  const int longest = argc > 1 ? atoi(argv[1]) : 1 << 26;
  const double seconds = argc > 2 ? atof(argv[2]) : 0.05;
  const char* names = argc > 3 ? argv[3] : NULL;
  const double sample_seconds = argc > 4 ? atof(argv[4]) : 0;
  const size_t room = (size_t)longest * (size_t)run.ranks;
  run.in = malloc(room);
  run.out = malloc(room);
  run.counts = malloc((size_t)run.ranks * sizeof(int));
  run.places = malloc(2 * (size_t)run.ranks * sizeof(int));
  memset(run.in, 1, room);
  memset(run.out, 1, room);
  for (size_t which = 0; which < sizeof collectives / sizeof collectives[0]; ++which)
    if (wanted(names, collectives[which].name)) time_collective(&run, (int)which, longest, seconds, sample_seconds);
  MPI_Finalize();
  return 0;
}
