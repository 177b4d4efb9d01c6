/* Communicators made, used and freed in a loop: neither memory nor descriptors nor communicators may be left behind.
 *   mpirun -n N comm_churn [loops [part]]
 * With a part the communicators are of so many ranks each, split from all. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plan_used.h"

static long resident_bytes(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static int entries(const char* path) {
  int count = 0;
  DIR* directory = opendir(path);
  while (directory != NULL && readdir(directory) != NULL) ++count;
  if (directory != NULL) closedir(directory);
  return count;
}

static int mappings(void) {
  int count = 0, c = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  while (file != NULL && (c = fgetc(file)) != EOF) count += c == '\n';
  if (file != NULL) fclose(file);
  return count;
}

/* Four calls: the third sets the communicator up. */
static int use_and_free(int loop, int part, int expect_plan) {
  MPI_Comm comm;
  int wrong = 0, sum = 0, ranks = 0, rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (part > 0)
    MPI_Comm_split(MPI_COMM_WORLD, rank / part, rank, &comm);
  else
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < 4; ++call) {
    MPI_Allreduce(&loop, &sum, 1, MPI_INT, MPI_SUM, comm);
    wrong |= sum != loop * ranks;
  }
  wrong |= expect_plan && !accelerated();
  MPI_Comm_free(&comm);
  return wrong;
}

struct Usage {
  long resident;
  int descriptors, mappings;
};

static struct Usage usage(void) {
  const struct Usage now = {resident_bytes(), entries("/proc/self/fd"), mappings()};
  return now;
}

int main(int argc, char** argv) {
  const long allowed_growth = 4 << 20; /* of the host's own pools and the heap's rounding */
  const int loops = argc > 1 ? atoi(argv[1]) : 10000, warm_up = loops / 10;
  const int part = argc > 2 ? atoi(argv[2]) : 0;
  int wrong = 0, rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int expect_plan = strcmp(plan_used(), "absent") != 0;
  struct Usage before = usage();
  for (int loop = 0; loop < loops; ++loop) {
    if (loop == warm_up) before = usage();
    wrong |= use_and_free(loop, part, expect_plan);
  }
  const struct Usage after = usage();
  const int grown = after.resident - before.resident > allowed_growth || after.descriptors > before.descriptors ||
                    after.mappings > before.mappings + 8;
  printf("comm_churn: rank %d, %d loops: resident %+ld KiB, descriptors %+d, mappings %+d%s%s\n", rank, loops - warm_up,
         (after.resident - before.resident) / 1024, after.descriptors - before.descriptors,
         after.mappings - before.mappings, grown ? ", grown" : "", wrong ? ", wrong" : "");
  MPI_Finalize();
  return wrong || grown;
}
