/* Two ranks on two nodes: what carries a short call before the first long one, and after it.
 *
 *   preload_network_channels BEFORE AFTER          names of channels */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { calls = 6, long_elements = 1 << 18 };

static int numbers[long_elements], sums[long_elements];

/* Whether sums are right, and all ranks' calls over `channel`. */
static int carried(int elements, const char* channel) {
  static const char* (*last_channels)(void);
  if (last_channels == NULL) *(void**)&last_channels = dlsym(RTLD_DEFAULT, "plait_last_channels");
  int right = 1;
  for (int call = 0; call < calls; ++call) {
    MPI_Allreduce(numbers, sums, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= sums[elements - 1] == 2 * (elements - 1);
  }
  const char* used = last_channels();
  if (strcmp(used, channel) != 0) printf("%d elements: over %s, not %s\n", elements, used, channel);
  return right && strcmp(used, channel) == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < long_elements; ++i) numbers[i] = i;
  int right = carried(1, argv[1]), all = 0;
  right &= carried(long_elements, argv[2]);
  right &= carried(1, argv[2]);
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 1;
}
