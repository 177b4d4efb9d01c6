/* The helper thread keeps to its share of a core: PLAIT_PROGRESS_DUTY=0.2, then all of it by plait_set_progress_duty().
 * The program sleeps while long reductions are under way.
 *   progress_duty [with_worker]
 * with_worker: PLAIT_PROGRESS_THREADS=2; the worker keeps to the share of its core as well. Prints "progress_duty:
 * right".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "task_name.h"

/* What one step takes too much the thread rests for afterwards: steps are short against the time that is looked at. */
enum { elements = 1 << 20, calls = 400, worker_calls = 300, window_us = 300000, tries = 5 };

static int rank;

static void check(int right, const char* what, double value) {
  if (right) return;
  fprintf(stderr, "progress_duty: wrong: %s (%g), rank %d\n", what, value, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of the thread of that name, in nanoseconds. */
static double processor_ns(const char* thread) {
  double found = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char path[300], name[32];
    task_name(task->d_name, name);
    if (strcmp(name, thread) != 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%lf", &found) != 1) found = -1;
    if (file != NULL) fclose(file);
  }
  closedir(tasks);
  return found;
}

/* Of a core, while it has enough to do. */
static double share_taken(void) {
  static float data[elements];
  static MPI_Request requests[calls];
  static MPI_Status statuses[calls]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array too short */
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < calls; ++i)
    MPI_Iallreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
  const double before_ns = processor_ns("plait-progress"), begin = MPI_Wtime();
  usleep(window_us);
  const double share = (processor_ns("plait-progress") - before_ns) / ((MPI_Wtime() - begin) * 1e9);
  MPI_Waitall(calls, requests, statuses);
  return share;
}

/* Neither takes more than a fifth, and the worker takes something: of reductions in memory that the ranks share. */
static void check_worker(void) {
  static MPI_Request requests[worker_calls];
  static MPI_Status statuses[worker_calls];
  float* data = NULL;
  MPI_Alloc_mem(elements * sizeof *data, MPI_INFO_NULL, &data);
  memset(data, 0, elements * sizeof *data);
  int worked = 0;
  for (int i = 0; i < tries && !worked; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int c = 0; c < worker_calls; ++c)
      MPI_Iallreduce(MPI_IN_PLACE, data, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[c]);
    const double helper_ns = processor_ns("plait-progress"), worker_ns = processor_ns("plait-worker1");
    const double begin = MPI_Wtime();
    check(worker_ns >= 0, "no worker was found", worker_ns);
    usleep(window_us);
    const double window_ns = (MPI_Wtime() - begin) * 1e9;
    const double helper = (processor_ns("plait-progress") - helper_ns) / window_ns;
    const double worker = (processor_ns("plait-worker1") - worker_ns) / window_ns;
    MPI_Waitall(worker_calls, requests, statuses);
    check(helper < 0.26, "the helper takes more than a fifth", helper);
    check(worker < 0.26, "the worker takes more than a fifth", worker);
    const int mine = worker > 0.01;
    MPI_Allreduce(&mine, &worked, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  check(worked, "the worker takes nothing", 0);
  MPI_Free_mem(data);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int (*set_duty)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "plait_set_progress_duty");
  check(set_duty != NULL, "there is no plait_set_progress_duty", 0);
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(set_duty(0) == -1 && set_duty(101) == -1, "a share that is none was taken", 0);
  const int with_worker = argc > 1 && strcmp(argv[1], "with_worker") == 0;
  if (with_worker) check_worker();
  int larger = with_worker;
  for (int i = 0; i < tries && !larger; ++i) {
    const double small = share_taken();
    check(small >= 0, "no helper thread was found", small);
    check(small < 0.26, "it takes more than a fifth", small);
    check(set_duty(100) == 20, "the share before is not a fifth", 0);
    const double whole = share_taken();
    check(set_duty(20) == 100, "the share before is not all", 0);
    /* other programs may have had the core */
    const int mine = small > 0.02 && whole > 1.5 * small;
    MPI_Allreduce(&mine, &larger, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  check(larger, "it takes no more when it may", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("progress_duty: right\n");
  MPI_Finalize();
  return 0;
}
