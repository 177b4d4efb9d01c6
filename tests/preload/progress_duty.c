/* The helper thread keeps to its share of a core: PLAIT_PROGRESS_DUTY=0.2, then all of it by plait_set_progress_duty().
 * The program sleeps while long reductions are under way. Prints "progress_duty: right". */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What one step takes too much the thread rests for afterwards: steps are short against the time that is looked at. */
enum { elements = 1 << 20, calls = 400, window_us = 300000, tries = 5 };

static int rank;

static void check(int right, const char* what, double value) {
  if (right) return;
  fprintf(stderr, "progress_duty: wrong: %s (%g), rank %d\n", what, value, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of the thread plait-progress, in nanoseconds. */
static double processor_ns(void) {
  double found = -1;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) == NULL) name[0] = '\0';
    fclose(file);
    if (strncmp(name, "plait-progress", 14) != 0) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
    file = fopen(path, "r");
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
  const double before_ns = processor_ns(), begin = MPI_Wtime();
  usleep(window_us);
  const double share = (processor_ns() - before_ns) / ((MPI_Wtime() - begin) * 1e9);
  MPI_Waitall(calls, requests, statuses);
  return share;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int (*set_duty)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "plait_set_progress_duty");
  check(set_duty != NULL, "there is no plait_set_progress_duty", 0);
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(set_duty(0) == -1 && set_duty(101) == -1, "a share that is none was taken", 0);
  int larger = 0;
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
