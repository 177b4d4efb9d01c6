/* Communicators of every kind, each used and freed: duplicates, parts, grids, inter-communicators and what is merged of
 * them. Intra-communicators of two and more ranks must get a plan, all others must give the right sums.
 *   mpirun -n N communicators    N even, at least 4 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "tests/preload/plan_used.h"

static int failures = 0;

static void check(int right, const char* what) {
  if (right) return;
  ++failures;
  printf("communicators: wrong: %s\n", what);
}

/* Enough calls for the set-up, of several collectives. */
static void use(MPI_Comm comm, const char* what) {
  int rank, ranks, right = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < 4; ++call) {
    int mine = rank + call, sum = 0, word = rank == ranks - 1 ? 17 * call : -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    right &= sum == ranks * (ranks - 1) / 2 + ranks * call;
    MPI_Bcast(&word, 1, MPI_INT, ranks - 1, comm);
    right &= word == 17 * call;
    MPI_Barrier(comm);
  }
  check(right, what);
  check(ranks == 1 || accelerated(), what);
}

static void use_inter(MPI_Comm inter, const char* what) {
  int remote, mine = 1, sum = 0, all[64] = {0}, right = 1;
  MPI_Comm_remote_size(inter, &remote);
  for (int call = 0; call < 5; ++call) {
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, inter);
    MPI_Barrier(inter);
    right &= sum == remote && all[remote - 1] == 1;
  }
  check(right, what);
  check(!accelerated(), what);
}

static void use_and_free(MPI_Comm comm, const char* what) {
  if (comm == MPI_COMM_NULL) return;
  use(comm, what);
  MPI_Comm_free(&comm);
}

static void copies(MPI_Comm comm) {
  MPI_Comm copy, second;
  MPI_Request request;
  MPI_Comm_dup(comm, &copy);
  use(copy, "dup");
  MPI_Comm_dup(copy, &second);
  MPI_Comm_free(&copy); /* before what was made of it */
  use_and_free(second, "dup of a dup");
  MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy);
  use_and_free(copy, "dup_with_info");
  MPI_Comm_idup(comm, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use_and_free(copy, "idup");
}

static void parts(MPI_Comm comm, int rank, int ranks) {
  MPI_Comm part;
  MPI_Group all, first;
  const int half[3] = {0, ranks / 2 - 1, 1};
  MPI_Comm_split(comm, rank % 2, -rank, &part);
  use_and_free(part, "split");
  MPI_Comm_split(comm, rank == 0 ? MPI_UNDEFINED : 1, rank, &part);
  use_and_free(part, "split without one rank");
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &part);
  use_and_free(part, "split_type");
  MPI_Comm_group(comm, &all);
  MPI_Group_range_incl(all, 1, (int(*)[3])(void*)&half, &first);
  MPI_Comm_create(comm, first, &part);
  use_and_free(part, "create");
  if (rank < ranks / 2) {
    MPI_Comm_create_group(comm, first, 5, &part);
    use_and_free(part, "create_group");
  }
  MPI_Group_free(&first);
  MPI_Group_free(&all);
}

static void grids(MPI_Comm comm, int ranks) {
  MPI_Comm grid, row;
  const int dims[2] = {2, ranks / 2}, periods[2] = {1, 0}, kept[2] = {0, 1};
  MPI_Cart_create(comm, 2, dims, periods, 1, &grid);
  use(grid, "cart");
  MPI_Cart_sub(grid, kept, &row);
  use_and_free(row, "cart_sub");
  MPI_Comm_free(&grid);
}

static void inters(MPI_Comm comm, int rank, int ranks) {
  MPI_Comm half, inter, copy, merged;
  const int low = rank < ranks / 2;
  MPI_Comm_split(comm, low, rank, &half);
  MPI_Intercomm_create(half, 0, comm, low ? ranks / 2 : 0, 1, &inter);
  use_inter(inter, "inter-communicator");
  MPI_Comm_dup(inter, &copy);
  MPI_Comm_free(&inter);
  use_inter(copy, "dup of an inter-communicator");
  MPI_Intercomm_merge(copy, low, &merged);
  MPI_Comm_free(&copy);
  use_and_free(merged, "merged");
  use_and_free(half, "half");
}

int main(int argc, char** argv) {
  int rank, ranks, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 3; ++round) {
    copies(MPI_COMM_WORLD);
    parts(MPI_COMM_WORLD, rank, ranks);
    grids(MPI_COMM_WORLD, ranks);
    inters(MPI_COMM_WORLD, rank, ranks);
    use(MPI_COMM_SELF, "self");
  }
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("communicators: %s\n", all == 0 ? "right" : "wrong");
  MPI_Finalize();
  return all != 0;
}
