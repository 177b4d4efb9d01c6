/* Each of MPI's collectives among all ranks, whatever their number: results are right, and Plait has carried the second
 * call of each. Prints which plan that was, and how long the two took. mpirun -n N every_collective [count] */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_used.h"

static int rank, ranks, root, count;
static long *in, *out; /* a vector a rank */
static int *counts, *places;

static long given(int from, int i) { return from * 3L + i; }
static void give(int length) {
  for (int i = 0; i < length; ++i) in[i] = given(rank, i);
  for (long i = 0; i < (long)ranks * count; ++i) out[i] = -1;
}
static long sum_at(int i, int of) { return 3L * of * (of - 1) / 2 + (long)of * i; }
static int sums(int first) {
  int right = 1;
  for (int i = 0; i < count; ++i) right &= out[i] == sum_at(first + i, ranks);
  return right;
}
static int vectors(void) {
  int right = 1;
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < count; ++i) right &= out[(long)from * count + i] == given(from, i);
  return right;
}
static int exchanged(void) {
  int right = 1;
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < count; ++i) right &= out[(long)from * count + i] == given(from, rank * count + i);
  return right;
}
static int scattered(void) {
  int right = 1;
  for (int i = 0; i < count; ++i) right &= out[i] == given(root, rank * count + i);
  return right;
}
static int scanned(int of) {
  int right = 1;
  for (int i = 0; i < count && of > 0; ++i) right &= out[i] == sum_at(i, of);
  return right;
}

#define WORLD MPI_COMM_WORLD
static int call_barrier(void) { return MPI_Barrier(WORLD) == MPI_SUCCESS; }
static int call_bcast(void) {
  give(count);
  MPI_Bcast(in, count, MPI_LONG, root, WORLD);
  int right = 1;
  for (int i = 0; i < count; ++i) right &= in[i] == given(root, i);
  return right;
}
static int call_reduce(void) {
  give(count);
  MPI_Reduce(in, out, count, MPI_LONG, MPI_SUM, root, WORLD);
  return rank != root || sums(0);
}
static int call_allreduce(void) {
  give(count);
  MPI_Allreduce(in, out, count, MPI_LONG, MPI_SUM, WORLD);
  return sums(0);
}
static int call_allgather(void) {
  give(count);
  MPI_Allgather(in, count, MPI_LONG, out, count, MPI_LONG, WORLD);
  return vectors();
}
static int call_allgatherv(void) {
  give(count);
  MPI_Allgatherv(in, count, MPI_LONG, out, counts, places, MPI_LONG, WORLD);
  return vectors();
}
static int call_gather(void) {
  give(count);
  MPI_Gather(in, count, MPI_LONG, out, count, MPI_LONG, root, WORLD);
  return rank != root || vectors();
}
static int call_gatherv(void) {
  give(count);
  MPI_Gatherv(in, count, MPI_LONG, out, counts, places, MPI_LONG, root, WORLD);
  return rank != root || vectors();
}
static int call_scatter(void) {
  give(ranks * count);
  MPI_Scatter(in, count, MPI_LONG, out, count, MPI_LONG, root, WORLD);
  return scattered();
}
static int call_scatterv(void) {
  give(ranks * count);
  MPI_Scatterv(in, counts, places, MPI_LONG, out, count, MPI_LONG, root, WORLD);
  return scattered();
}
static int call_alltoall(void) {
  give(ranks * count);
  MPI_Alltoall(in, count, MPI_LONG, out, count, MPI_LONG, WORLD);
  return exchanged();
}
static int call_alltoallv(void) {
  give(ranks * count);
  MPI_Alltoallv(in, counts, places, MPI_LONG, out, counts, places, MPI_LONG, WORLD);
  return exchanged();
}
static int call_reduce_scatter_block(void) {
  give(ranks * count);
  MPI_Reduce_scatter_block(in, out, count, MPI_LONG, MPI_SUM, WORLD);
  return sums(rank * count);
}
static int call_reduce_scatter(void) {
  give(ranks * count);
  MPI_Reduce_scatter(in, out, counts, MPI_LONG, MPI_SUM, WORLD);
  return sums(rank * count);
}
static int call_scan(void) {
  give(count);
  MPI_Scan(in, out, count, MPI_LONG, MPI_SUM, WORLD);
  return scanned(rank + 1);
}
static int call_exscan(void) {
  give(count);
  MPI_Exscan(in, out, count, MPI_LONG, MPI_SUM, WORLD);
  return scanned(rank);
}

static const struct {
  const char* name;
  int (*call)(void);
} all[] = {{"barrier", call_barrier},
           {"bcast", call_bcast},
           {"reduce", call_reduce},
           {"allreduce", call_allreduce},
           {"allgather", call_allgather},
           {"allgatherv", call_allgatherv},
           {"gather", call_gather},
           {"gatherv", call_gatherv},
           {"scatter", call_scatter},
           {"scatterv", call_scatterv},
           {"alltoall", call_alltoall},
           {"alltoallv", call_alltoallv},
           {"reduce_scatter_block", call_reduce_scatter_block},
           {"reduce_scatter", call_reduce_scatter},
           {"scan", call_scan},
           {"exscan", call_exscan}};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  count = argc > 1 ? atoi(argv[1]) : 3;
  root = ranks / 3;
  const int expect_plan = strcmp(plan_used(), "absent") != 0;
  in = calloc((size_t)ranks * (size_t)count, sizeof *in);
  out = calloc((size_t)ranks * (size_t)count, sizeof *out);
  counts = calloc((size_t)ranks, sizeof *counts);
  places = calloc((size_t)ranks, sizeof *places);
  for (int i = 0; i < ranks; ++i) counts[i] = count, places[i] = i * count;
  int well = 1;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    double took[2];
    int right = 1;
    for (int time = 0; time < 2; ++time) {
      const double begin = MPI_Wtime();
      right &= all[i].call();
      took[time] = MPI_Wtime() - begin;
    }
    const int by_plan = accelerated() || !expect_plan;
    int mine = right && by_plan, every = 0;
    const char* plan = plan_used();
    PMPI_Allreduce(&mine, &every, 1, MPI_INT, MPI_MIN, WORLD);
    if (!right) printf("rank %d: %s is wrong\n", rank, all[i].name);
    if (rank == 0) printf("%-20s %8.1f ms, %8.1f ms  %s\n", all[i].name, took[0] * 1e3, took[1] * 1e3, plan);
    if (rank == 0) fflush(stdout);
    well &= every;
  }
  if (rank == 0) printf("every_collective: %s\n", well ? "right" : "not all are right, and by plans");
  MPI_Finalize();
  return !well;
}
