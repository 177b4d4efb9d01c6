/* Workers of the helper thread: there are as many as were asked for and the process has processing units for, each
 * on one of its own, with signals blocked; they take part in long reductions, whose results are right; and they are
 * gone after MPI_Finalize. progress_threads THREADS [one|api] one: the process has one processing unit; api: THREADS
 * are asked for by plait_set_progress_threads(). Posts what overlap_threads.json has as a step. Prints
 * "progress_threads: right". */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task_name.h"

enum { calls = 4, most_elements = 1 << 20, most_threads = 64, tries = 100, pause_us = 20000 };
static const int elements[calls] = {1 << 18, 1 << 18, 1 << 20, 300001}; /* 1, 1, 4 and 1.1 MiB */

static int rank;

static void check(int right, const char* what, double value) {
  if (right) return;
  fprintf(stderr, "progress_threads: wrong: %s (%g), rank %d\n", what, value, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Thread {
  int there;
  double processor_ns;
  unsigned long long blocked; /* signals */
  int unit;                   /* -1: several */
};

static unsigned long long blocked_signals(const char* task) {
  char path[300], line[200];
  unsigned long long blocked = 0;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "SigBlk: %llx", &blocked) == 1) break;
  fclose(file);
  return blocked;
}

static int only_unit(int task) {
  cpu_set_t units;
  if (sched_getaffinity(task, sizeof units, &units) != 0 || CPU_COUNT(&units) != 1) return -1;
  int unit = 0;
  while (!CPU_ISSET(unit, &units)) ++unit;
  return unit;
}

/* The helper thread, and its workers by their numbers. Returns how many there are in all. */
static int look_at(struct Thread threads[most_threads]) {
  int found = 0;
  memset(threads, 0, most_threads * sizeof *threads);
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char path[300], name[32];
    task_name(task->d_name, name);
    int number = 0;
    if (strcmp(name, "plait-progress") != 0 && sscanf(name, "plait-worker%d", &number) != 1) continue;
    check(number >= 0 && number < most_threads && !threads[number].there, "a thread's number", number);
    ++found;
    struct Thread* thread = &threads[number];
    thread->there = 1;
    thread->blocked = blocked_signals(task->d_name);
    thread->unit = only_unit(atoi(task->d_name));
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%lf", &thread->processor_ns) != 1) thread->processor_ns = 0;
    if (file != NULL) fclose(file);
  }
  closedir(tasks);
  return found;
}

/* A thread names and binds itself. */
static void await_threads(int expected) {
  struct Thread threads[most_threads];
  const unsigned long long some = 1ull << (10 - 1) | 1ull << (15 - 1); /* SIGUSR1, SIGTERM */
  int ready = 0;
  for (int i = 0; i < 1000 && !ready; ++i) {
    ready = look_at(threads) == expected;
    for (int t = 0; t < expected; ++t) ready = ready && threads[t].there && threads[t].unit >= 0;
    if (!ready) usleep(5000);
  }
  check(look_at(threads) == expected, "not so many threads", look_at(threads));
  check(ready, "a thread has no processing unit of its own", expected);
  for (int t = 0; t < expected; ++t) {
    check((threads[t].blocked & some) == some, "signals are not blocked in a thread", t);
    for (int other = 0; other < t; ++other) check(threads[t].unit != threads[other].unit, "two threads on a unit", t);
  }
}

static float value(int call, int index, int of_rank, int step) {
  return (float)((index * 7 + call * 31 + of_rank * 5 + step * 3) % 1000);
}

/* The program is away meanwhile, but for the rank that posts last, whose posting moves its part on as well. */
static void run_step(int step, int ranks, float (*in)[most_elements], float (*out)[most_elements]) {
  MPI_Request requests[calls];
  static MPI_Status statuses[calls];
  for (int c = 0; c < calls; ++c)
    for (int i = 0; i < elements[c]; ++i) in[c][i] = value(c, i, rank, step);
  MPI_Barrier(MPI_COMM_WORLD);
  if (step % ranks == rank) usleep(pause_us / 4);
  for (int c = 0; c < calls; ++c)
    MPI_Iallreduce(in[c], out[c], elements[c], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[c]);
  usleep(pause_us);
  MPI_Waitall(calls, requests, statuses);
  for (int c = 0; c < calls; ++c)
    for (int i = 0; i < elements[c]; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += value(c, i, r, step);
      if (out[c][i] != sum) check(0, "a sum", i);
    }
}

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? atoi(argv[1]) : 1;
  const int one = argc > 2 && strcmp(argv[2], "one") == 0, api = argc > 2 && strcmp(argv[2], "api") == 0;
  cpu_set_t units;
  sched_getaffinity(0, sizeof units, &units);
  if (one) {
    int unit = 0;
    while (!CPU_ISSET(unit, &units)) ++unit;
    CPU_ZERO(&units);
    CPU_SET(unit, &units);
    sched_setaffinity(0, sizeof units, &units);
  }
  const int expected = wanted < CPU_COUNT(&units) ? wanted : CPU_COUNT(&units);
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int mine = 1, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int (*set_threads)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "plait_set_progress_threads");
  check(set_threads != NULL, "there is no plait_set_progress_threads", 0);
  check(set_threads(0) == -1 && set_threads(1025) == -1, "a number that is none was taken", 0);
  if (api) {
    await_threads(1);
    check(set_threads(wanted) == 1, "the number before is not 1", 0);
    check(set_threads(1) == wanted && set_threads(wanted) == 1, "the number before is not the last one", wanted);
  }
  await_threads(expected);
  /* How much of it the workers do depends on what else the machine does: they may come late. */
  struct Thread before[most_threads], after[most_threads];
  float(*in)[most_elements] = NULL, (*out)[most_elements] = NULL; /* where the ranks reach each other's */
  MPI_Alloc_mem(calls * sizeof *in, MPI_INFO_NULL, &in);
  MPI_Alloc_mem(calls * sizeof *out, MPI_INFO_NULL, &out);
  look_at(before);
  int worked = 0;
  for (int step = 0; step < tries && !worked; ++step) {
    run_step(step, ranks, in, out);
    look_at(after);
    mine = 1;
    for (int t = 1; t < expected; ++t) mine = mine && after[t].processor_ns - before[t].processor_ns > 1e6;
    if (step < 5) mine = 0;
    MPI_Allreduce(&mine, &worked, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  check(worked, "a worker did nothing", expected);
  MPI_Free_mem(in);
  MPI_Free_mem(out);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("progress_threads: right\n");
  fflush(stdout);
  MPI_Finalize();
  if (look_at(after) != 0) {
    fprintf(stderr, "progress_threads: wrong: threads are left\n");
    return 1;
  }
  return 0;
}
