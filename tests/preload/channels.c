/* plait_set_channels(): a communicator's own channels, and lists that are refused on all ranks alike. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int (*set_channels)(MPI_Comm, const char*);
static const char* (*last_channels)(void);
static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds && failures++ == 0) printf("wrong: %s\n", what);
}

/* What carries the sixth allreduce. */
static const char* carrier(MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < 6; ++call) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == ranks * (ranks - 1) / 2, "a sum");
  }
  return last_channels();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  *(void**)&set_channels = dlsym(RTLD_DEFAULT, "plait_set_channels");
  *(void**)&last_channels = dlsym(RTLD_DEFAULT, "plait_last_channels");
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm messages, shared, again;
  MPI_Comm_dup(MPI_COMM_WORLD, &messages);
  MPI_Comm_dup(MPI_COMM_WORLD, &shared);
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  expect(set_channels(messages, "mpi") == MPI_SUCCESS, "mpi is refused");
  expect(set_channels(shared, "shm") == MPI_SUCCESS, "shm is refused");
  expect(set_channels(again, "mpi") == MPI_SUCCESS && set_channels(again, NULL) == MPI_SUCCESS, "NULL is refused");
  expect(set_channels(again, "pigeons") == MPI_ERR_ARG, "an unknown channel is taken");
  expect(set_channels(again, rank == 0 ? "mpi" : "shm") == MPI_ERR_ARG, "lists that differ are taken");
  expect(strcmp(carrier(messages), "mpi") == 0, "not over messages");
  expect(strcmp(carrier(shared), "shm") == 0, "not over shared memory");
  expect(strcmp(carrier(again), "shm") == 0, "a refused list is used");
  expect(strcmp(carrier(MPI_COMM_WORLD), "shm") == 0, "another communicator's list is used");
  expect(set_channels(shared, "mpi") == MPI_ERR_ARG, "a connected communicator takes channels");
  MPI_Comm_free(&messages);
  MPI_Comm_free(&shared);
  MPI_Comm_free(&again);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("channels: right\n");
  MPI_Finalize();
  return all != 0;
}
