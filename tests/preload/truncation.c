/* Messages that are longer than their receiver has room for: it gets an error, memory beyond stays as it was, nobody
 * waits for ever, and the next call is right. Prints "truncation: right" at the end; anything wrong ends the job. */
#include <mpi.h>
/* Open MPI 4.1 has MPI 4.0's persistent collectives as an extension. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static MPI_Comm comm;

static void check(int right, const char* what, int length) {
  if (right) return;
  fprintf(stderr, "truncation: wrong: %s, length %d, rank %d\n", what, length, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int error_class(int code) {
  int found = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
  return found;
}

static char* filled(size_t bytes, char value) {
  char* memory = malloc(bytes);
  memset(memory, value, bytes);
  return memory;
}

static void check_all(const char* memory, int bytes, char value, const char* what, int length) {
  for (int i = 0; i < bytes; ++i) check(memory[i] == value, what, length);
}

/* Everybody sends `length` bytes to everybody; rank 1 has room for `room` from rank 0. */
static void to_all(int length, int room) {
  const size_t all = (size_t)length * (size_t)ranks;
  int* counts = malloc(sizeof(int) * (size_t)ranks * 3);
  int *places = counts + ranks, *rooms = places + ranks;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = rooms[i] = length;
    places[i] = i * length;
  }
  if (rank == 1) rooms[0] = room;
  char *send = filled(all, (char)(rank + 1)), *receive = filled(all, 99);
  const int code = MPI_Alltoallv(send, counts, places, MPI_CHAR, receive, rooms, places, MPI_CHAR, comm);
  if (rank == 1 && room < length)
    check(error_class(code) == MPI_ERR_TRUNCATE, "an error of the receiver", length);
  else
    check(code == MPI_SUCCESS, "no error elsewhere", length);
  for (int i = 0; i < ranks; ++i) {
    check_all(receive + places[i], rooms[i], (char)(i + 1), "what there was room for", length);
    check_all(receive + places[i] + rooms[i], length - rooms[i], 99, "memory beyond", length);
  }
  free(counts);
  free(send);
  free(receive);
}

/* Rank 1 sends the last rank, the root, more than it has room for. */
static void to_root(int length, int room) {
  const int root = ranks - 1;
  const size_t all = (size_t)length * (size_t)ranks;
  int* counts = malloc(sizeof(int) * (size_t)ranks * 2);
  int* places = counts + ranks;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = i == 1 ? room : length;
    places[i] = i * length;
  }
  char *send = filled((size_t)length, (char)(rank + 1)), *receive = filled(all, 99);
  const int code = MPI_Gatherv(send, length, MPI_CHAR, receive, counts, places, MPI_CHAR, root, comm);
  if (rank == root && room < length)
    check(error_class(code) == MPI_ERR_TRUNCATE, "an error of the root", length);
  else
    check(code == MPI_SUCCESS, "no error elsewhere", length);
  for (int i = 0; rank == root && i < ranks; ++i) {
    check_all(receive + places[i], counts[i], (char)(i + 1), "what the root had room for", length);
    check_all(receive + places[i] + counts[i], length - counts[i], 99, "memory beyond at the root", length);
  }
  free(counts);
  free(send);
  free(receive);
}

/* The root, rank 0, sends rank 1 more than it has room for. */
static void from_root(int length, int room) {
  const size_t all = (size_t)length * (size_t)ranks;
  int* counts = malloc(sizeof(int) * (size_t)ranks * 2);
  int* places = counts + ranks;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = length;
    places[i] = i * length;
  }
  char *send = filled(all, 7), *receive = filled((size_t)length, 99);
  const int mine = rank == 1 ? room : length;
  const int code = MPI_Scatterv(send, counts, places, MPI_CHAR, receive, mine, MPI_CHAR, 0, comm);
  if (mine < length)
    check(error_class(code) == MPI_ERR_TRUNCATE, "an error of the receiver", length);
  else
    check(code == MPI_SUCCESS, "no error elsewhere", length);
  check_all(receive, mine, 7, "what there was room for", length);
  check_all(receive + mine, length - mine, 99, "memory beyond", length);
  free(counts);
  free(send);
  free(receive);
}

/* Rank 1 has too little room: it cannot start again, and nobody who does waits for it. */
static void started_again(void) {
  const int length = 1000;
  MPI_Comm own;
  MPI_Comm_dup(comm, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  int* counts = malloc(sizeof(int) * (size_t)ranks * 3);
  int *places = counts + ranks, *rooms = places + ranks;
  for (int i = 0; i < ranks; ++i) {
    counts[i] = rooms[i] = length;
    places[i] = i * length;
  }
  if (rank == 1) rooms[0] = 10;
  char *send = filled((size_t)(length * ranks), (char)(rank + 1)), *receive = filled((size_t)(length * ranks), 99);
  MPI_Request request;
  PERSISTENT(Alltoallv)
  (send, counts, places, MPI_CHAR, receive, rooms, places, MPI_CHAR, own, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) check(error_class(code) == MPI_ERR_TRUNCATE, "an error of the persistent receiver", length);
  check_all(receive, rooms[0], 1, "what there was room for, persistent", length);
  check_all(receive + rooms[0], length - rooms[0], 99, "memory beyond, persistent", length);
  if (rank != 1 && code == MPI_SUCCESS) {
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(code != MPI_SUCCESS, "an error of who starts again", length);
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  MPI_Comm_free(&own);
  free(counts);
  free(send);
  free(receive);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  to_all(8, 8); /* sets the communicator up */
  const int lengths[] = {16, 1000, 20000, 300000};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    const int rooms[] = {lengths[i] / 2, 0, lengths[i]};
    for (int k = 0; k < 3; ++k) {
      to_all(lengths[i], rooms[k]);
      to_root(lengths[i], rooms[k]);
      from_root(lengths[i], rooms[k]);
      MPI_Barrier(comm);
    }
  }
  started_again();
  MPI_Comm_free(&comm);
  if (rank == 0) printf("truncation: right\n");
  MPI_Finalize();
  return 0;
}
