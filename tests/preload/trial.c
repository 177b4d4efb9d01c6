/* Collectives whose class a trial decides on, and what it decides.
 *
 *   trial mixed          many kinds and lengths, on several communicators, with roots, operators and other calls
 *                        between them; every result is checked
 *   trial plain          one small allreduce again and again: prints its last plan
 *   trial twin           the same, then on a duplicate of the communicator: says whether that tries again
 *   trial slow-messages  the same, where messages that are no part of a collective of the host are slow: plans over the
 *                        channel mpi are, then */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int slow_messages = 0;

/* Stands before the MPI library's. */
int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  static int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = NULL;
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Isend");
  if (slow_messages) usleep(500);
  return next(data, count, type, to, tag, comm, request);
}

enum { longest = 1 << 14 };
static int wrong = 0;
static int sent[longest * 4], got[longest * 4];

static void check(int holds, const char* what, int count) {
  if (!holds && wrong++ == 0) printf("wrong: %s of %d\n", what, count);
}

static void multiply(void* in, void* out, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)out)[i] = ((int*)in)[i] * 3 + ((int*)out)[i];
}

/* One call of each kind, of `count` elements (a rank), as the round asks. */
static void call_all(MPI_Comm comm, int count, int round, MPI_Op ordered) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int root = round % ranks, sum = ranks * (ranks - 1) / 2;
  for (int i = 0; i < count; ++i) sent[i] = rank + i + round;
  MPI_Allreduce(sent, got, count, MPI_INT, MPI_SUM, comm);
  check(got[0] == sum + ranks * round && got[count - 1] == sum + ranks * (count - 1 + round), "allreduce", count);
  MPI_Allreduce(sent, got, count, MPI_INT, ordered, comm);
  int expected = ranks - 1 + round;
  for (int r = ranks - 2; r >= 0; --r) expected += 3 * (r + round);
  if (ranks == 2) check(got[0] == expected, "ordered allreduce", count);
  MPI_Reduce(sent, got, count, MPI_INT, MPI_MAX, root, comm);
  if (rank == root) check(got[count - 1] == ranks - 1 + count - 1 + round, "reduce", count);
  MPI_Bcast(sent, count, MPI_INT, root, comm);
  check(sent[0] == root + round && sent[count - 1] == root + count - 1 + round, "bcast", count);
  for (int i = 0; i < count; ++i) sent[i] = rank * 1000 + round;
  MPI_Allgather(sent, count, MPI_INT, got, count, MPI_INT, comm);
  for (int r = 0; r < ranks; ++r) check(got[r * count + count - 1] == r * 1000 + round, "allgather", count);
  MPI_Gather(sent, count, MPI_INT, got, count, MPI_INT, root, comm);
  for (int r = 0; r < ranks && rank == root; ++r) check(got[r * count] == r * 1000 + round, "gather", count);
  for (int i = 0; i < count * ranks; ++i) sent[i] = rank * 100 + i / count + round;
  MPI_Alltoall(sent, count, MPI_INT, got, count, MPI_INT, comm);
  for (int r = 0; r < ranks; ++r) check(got[r * count] == r * 100 + rank + round, "alltoall", count);
  MPI_Scatter(sent, count, MPI_INT, got, count, MPI_INT, root, comm);
  check(got[count - 1] == root * 100 + rank + round, "scatter", count);
  MPI_Reduce_scatter_block(sent, got, count, MPI_INT, MPI_SUM, comm);
  check(got[0] == sum * 100 + ranks * (rank + round), "reduce_scatter_block", count);
  MPI_Request request;
  MPI_Iallreduce(sent, got, count, MPI_INT, MPI_MIN, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(got[0] == round, "iallreduce", count);
  MPI_Barrier(comm);
}

static void run_mixed(void) {
  MPI_Comm half, twin;
  MPI_Op ordered;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Op_create(multiply, 0, &ordered);
  MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
  for (int round = 0; round < 70; ++round) {
    call_all(MPI_COMM_WORLD, 1 + round % 3, round, ordered);
    call_all(round < 40 ? twin : MPI_COMM_WORLD, 700, round, ordered);
    call_all(half, 60, round, ordered);
    if (round % 2 == 0) call_all(MPI_COMM_WORLD, longest - round, round, ordered);
    if (round == 20) { /* in the middle of its trials */
      MPI_Comm_free(&twin);
      MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    }
  }
  MPI_Op_free(&ordered);
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
}

static const char* last_plan(void) {
  static const char* (*plan)(void) = NULL;
  if (plan == NULL) *(void**)&plan = dlsym(RTLD_DEFAULT, "plait_last_plan");
  return plan != NULL ? plan() : "absent";
}

static void run_plain(MPI_Comm comm, int calls) {
  for (int call = 0; call < calls; ++call) {
    for (int i = 0; i < 4; ++i) sent[i] = call;
    MPI_Allreduce(sent, got, 4, MPI_INT, MPI_MAX, comm);
    check(got[3] == call, "allreduce", 4);
  }
}

/* What was settled on one communicator is known on the next: its calls go one way from the set-up on. */
static void run_twin(int rank) {
  MPI_Comm twin;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  run_plain(twin, 5);
  char settled[256];
  snprintf(settled, sizeof settled, "%s", last_plan());
  int others = 0;
  for (int call = 0; call < 300; ++call) {
    run_plain(twin, 1);
    others += strcmp(settled, last_plan()) != 0;
  }
  if (rank == 0) printf("twin %s: %d of 300 calls went another way\n", others > 0 ? "tried" : "untried", others);
  MPI_Comm_free(&twin);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "mixed";
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  slow_messages = strcmp(mode, "slow-messages") == 0;
  if (strcmp(mode, "mixed") == 0) {
    run_mixed();
  } else {
    run_plain(MPI_COMM_WORLD, 900); /* a trial ends after some 550, and the first look at it comes 1024 later */
  }
  char plan[256];
  snprintf(plan, sizeof plan, "%s", last_plan());
  if (strcmp(mode, "twin") == 0) run_twin(rank);
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) printf("trial: right, plan %s\n", plan);
  MPI_Finalize();
  return wrong != 0;
}
