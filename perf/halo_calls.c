/* Times of a halo exchange of the eight neighbours of a periodic grid, by the host and by Plait in turn: for each size
 * of an edge the slowest rank's microseconds a call, the median of rounds, and the host's over Plait's. A line each.
 *   mpirun -n N -x LD_PRELOAD=libplait.so halo_calls [alltoall|alltoallv|alltoallw|allgather|posted|persistent] [most
 * bytes] posted and persistent: an alltoall of that form, which is waited for at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum { neighbours = 8, rounds = 15, largest = 64 << 10, warm_up = 6 };

static char in[neighbours * largest], out[neighbours * largest];
static const char* kind = "alltoall";
static MPI_Request kept[2]; /* the host's, and Plait's */
static int now = 1;

static MPI_Comm make_grid(void) {
  int ranks, rank, lengths[2] = {0, 0}, around[neighbours], weights[neighbours], next = 0;
  MPI_Comm grid;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Dims_create(ranks, 2, lengths);
  const int row = rank / lengths[1], column = rank % lengths[1];
  for (int down = -1; down <= 1; ++down)
    for (int right = -1; right <= 1; ++right)
      if (down != 0 || right != 0) {
        weights[next] = 1;
        around[next++] =
            (row + down + lengths[0]) % lengths[0] * lengths[1] + (column + right + lengths[1]) % lengths[1];
      }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, neighbours, around, weights, neighbours, around, weights,
                                 MPI_INFO_NULL, 0, &grid);
  return grid;
}

static void call(MPI_Comm grid, int bytes) {
  int counts[neighbours], places[neighbours];
  MPI_Aint far[neighbours];
  MPI_Datatype types[neighbours];
  for (int i = 0; i < neighbours; ++i) {
    counts[i] = bytes;
    places[i] = i * bytes;
    far[i] = i * bytes;
    types[i] = MPI_BYTE;
  }
  if (strcmp(kind, "alltoall") == 0) MPI_Neighbor_alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, grid);
  if (strcmp(kind, "alltoallv") == 0)
    MPI_Neighbor_alltoallv(in, counts, places, MPI_BYTE, out, counts, places, MPI_BYTE, grid);
  if (strcmp(kind, "alltoallw") == 0) MPI_Neighbor_alltoallw(in, counts, far, types, out, counts, far, types, grid);
  MPI_Request request;
  if (strcmp(kind, "posted") == 0) {
    MPI_Ineighbor_alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(kind, "persistent") == 0) {
    MPI_Start(&kept[now]);
    MPI_Wait(&kept[now], MPI_STATUS_IGNORE);
  }
  if (strcmp(kind, "allgather") == 0) MPI_Neighbor_allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, grid);
}

static void keep(MPI_Comm grid, int bytes, int plait) {
  if (strcmp(kind, "persistent") == 0)
    PERSISTENT(Neighbor_alltoall)(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, grid, MPI_INFO_NULL, &kept[plait]);
}

static void drop(void) {
  for (int i = 0; i < 2 && strcmp(kind, "persistent") == 0; ++i) MPI_Request_free(&kept[i]);
}

static void choose(int plait) {
  int (*enable)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "plait_set_enabled");
  if (enable != NULL) enable(plait);
  now = plait;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double microseconds_a_call(MPI_Comm grid, int bytes, int calls) {
  double mine, slowest;
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(grid, bytes);
  mine = (MPI_Wtime() - begin) / calls * 1e6;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char** argv) {
  static double times[2][rounds];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) kind = argv[1];
  const int most = argc > 2 ? atoi(argv[2]) : largest;
  MPI_Comm grid = make_grid();
  for (int i = 0; i < warm_up; ++i) MPI_Neighbor_alltoall(in, 1024, MPI_BYTE, out, 1024, MPI_BYTE, grid);
  double all = 0;
  int sizes = 0;
  for (int bytes = 8; bytes <= most && bytes <= largest; bytes *= bytes < 4096 ? 8 : 2, ++sizes) {
    for (int plait = 0; plait < 2; ++plait) {
      choose(plait);
      keep(grid, bytes, plait);
    }
    int calls = (int)(3e4 / microseconds_a_call(grid, bytes, 5)) + 1;
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; ++round)
      for (int plait = 0; plait < 2; ++plait) {
        choose(plait);
        microseconds_a_call(grid, bytes, 2);
        times[plait][round] = microseconds_a_call(grid, bytes, calls);
      }
    choose(1);
    drop();
    for (int plait = 0; plait < 2; ++plait) qsort(times[plait], rounds, sizeof times[plait][0], ascending);
    const double host = times[0][rounds / 2], here = times[1][rounds / 2];
    all += host / here;
    if (rank == 0)
      printf("{\"kind\": \"%s\", \"bytes\": %d, \"host_us\": %.1f, \"plait_us\": %.1f, \"ratio\": %.2f}\n", kind, bytes,
             host, here, host / here);
  }
  if (rank == 0) printf("{\"kind\": \"%s\", \"mean_ratio\": %.2f}\n", kind, all / sizes);
  MPI_Finalize();
  return 0;
}
