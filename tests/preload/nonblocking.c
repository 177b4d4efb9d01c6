/* Non-blocking collectives as programs use them: posted while other ranks wait for a message, many under
 * way on several communicators, completed in another order on each rank, communicators freed meanwhile, and no memory
 * that grows. With arguments: repeats of the last part. Prints "nonblocking: right" at the end; anything wrong ends the
 * job. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { communicators = 4, outstanding = 64, rounds = 20 };

static int rank, ranks;
static MPI_Status
    statuses[communicators * outstanding]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array too short */

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "nonblocking: wrong: %s, rank %d\n", what, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static long sum_of_ranks(long members) { return members * (members - 1) / 2; }

/* A rank may post its call, then send, and another receive before it posts its own: no call may wait for the others.
 * A blocking call every second round has the communicator set up on the way. */
static void post_before_a_message(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 6; ++i) {
    long mine = rank + i, all = -1;
    int token = i;
    MPI_Request request;
    if (rank == ranks - 1) MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, comm, &request);
    if (rank == 0 && ranks > 1) MPI_Send(&token, 1, MPI_INT, ranks - 1, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(all == sum_of_ranks(ranks) + (long)ranks * i, "a sum beside a message");
    if (i % 2 == 1) MPI_Barrier(comm);
  }
  MPI_Comm_free(&comm);
}

/* Each rank waits in an order of its own. */
static void complete_in_any_order(MPI_Request requests[], int count) {
  for (int i = 0; i < count; ++i) {
    const int chosen = (i * 7 + rank * 13) % count;
    if (i % 3 == 0) {
      int done = 0;
      while (!done) MPI_Test(&requests[chosen], &done, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&requests[chosen], MPI_STATUS_IGNORE);
    }
  }
  MPI_Waitall(count, requests, statuses);
}

static void many_on_several(void) {
  MPI_Comm comms[communicators];
  int members[communicators], first[communicators];
  for (int c = 0; c < communicators; ++c) {
    MPI_Comm_split(MPI_COMM_WORLD, c % 2 == 0 ? 0 : rank % 2, rank, &comms[c]);
    MPI_Comm_size(comms[c], &members[c]);
    first[c] = c % 2 == 0 ? 0 : rank % 2;
  }
  static long mine[communicators * outstanding], all[communicators * outstanding];
  static MPI_Request requests[communicators * outstanding];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < communicators * outstanding; ++i) {
      mine[i] = rank + i + round;
      all[i] = -1;
      MPI_Iallreduce(&mine[i], &all[i], 1, MPI_LONG, MPI_SUM, comms[i % communicators], &requests[i]);
    }
    long blocking = -1, one = 1; /* comes after those before it */
    MPI_Allreduce(&one, &blocking, 1, MPI_LONG, MPI_SUM, comms[round % communicators]);
    check(blocking == members[round % communicators], "a blocking sum in between");
    complete_in_any_order(requests, communicators * outstanding);
    for (int i = 0; i < communicators * outstanding; ++i) {
      const int c = i % communicators, step = c % 2 == 0 ? 1 : 2;
      const long ranks_sum = (long)members[c] * first[c] + step * sum_of_ranks(members[c]);
      check(all[i] == ranks_sum + (long)members[c] * (i + round), "one sum of many");
    }
  }
  for (int c = 0; c < communicators; ++c) MPI_Comm_free(&comms[c]);
}

/* All ways of waiting for an operation whose last rank comes late, beside requests that are none. */
static void beside_no_request(void) {
  enum { ways = 5 };
  for (int i = 0; i < 4 * ways; ++i) {
    long mine = rank, all = -1;
    int done = 0, index = 0;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == i % ranks) usleep(1000);
    MPI_Iallreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    switch (i % ways) {
      case 0:
        MPI_Waitall(3, requests, statuses);
        break;
      case 1:
        MPI_Waitany(3, requests, &index, statuses);
        break;
      case 2:
        MPI_Waitsome(3, requests, &done, &index, statuses);
        break;
      case 3:
        while (!done) MPI_Testall(3, requests, &done, statuses);
        break;
      default:
        while (!done) MPI_Request_get_status(requests[1], &done, statuses);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    check(all == sum_of_ranks(ranks) && requests[1] == MPI_REQUEST_NULL, "a sum beside no request");
  }
}

/* The program knows by a later call that the operation is complete. Hosts' own requests may refuse it: comes late,
 * where the communicator is set up. */
static void request_freed(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  long mine[8], all[8];
  for (int i = 0; i < 8; ++i) {
    MPI_Request request;
    mine[i] = rank + i;
    all[i] = -1;
    MPI_Iallreduce(&mine[i], &all[i], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 8; ++i) check(all[i] == sum_of_ranks(ranks) + (long)ranks * i, "a sum of a freed request");
}

static void freed_meanwhile(void) {
  for (int i = 0; i < 4; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < 3; ++k) MPI_Barrier(comm); /* Open MPI's own operations do not survive what follows */
    long mine[8], all[8];
    MPI_Request requests[8];
    for (int k = 0; k < 8; ++k) {
      mine[k] = rank + k;
      MPI_Iallreduce(&mine[k], &all[k], 1, MPI_LONG, MPI_SUM, comm, &requests[k]);
    }
    MPI_Comm_free(&comm);
    MPI_Waitall(8, requests, statuses);
    for (int k = 0; k < 8; ++k) check(all[k] == sum_of_ranks(ranks) + (long)ranks * k, "a sum of a freed communicator");
  }
}

static void add(void* left, void* right, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((long*)right)[i] += ((long*)left)[i];
}

/* What a posted operation uses may be freed before its end. */
static void types_and_operators_freed(void) {
  for (int i = 0; i < 20; ++i) {
    long mine[2] = {rank, -1}, all[64] = {0}, sum = -1;
    MPI_Datatype every_other;
    MPI_Op op;
    MPI_Request requests[2];
    MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &every_other);
    MPI_Type_commit(&every_other);
    MPI_Op_create(add, 1, &op);
    MPI_Iallgather(mine, 1, MPI_LONG, all, 1, every_other, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(mine, &sum, 1, MPI_LONG, op, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&every_other);
    MPI_Op_free(&op);
    MPI_Datatype other; /* takes the place of the freed one */
    MPI_Type_contiguous(3, MPI_INT, &other);
    MPI_Type_commit(&other);
    MPI_Waitall(2, requests, statuses);
    MPI_Type_free(&other);
    for (int r = 0; r < ranks && r < 32; ++r) check(all[2 * r] == r && all[2 * r + 1] == 0, "data of a freed type");
    check(sum == sum_of_ranks(ranks), "a sum by a freed operator");
  }
}

static long resident_pages(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  check(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2, "/proc/self/statm");
  fclose(file);
  return resident;
}

/* What is only touched late (a page of a pool, of the stack) grows once; what is lost at every call grows in every part. */
static void no_growth(long repeats) {
  enum { parts = 5, most_bytes = 16 * 1024 };
  long least = LONG_MAX;
  for (int part = 0; part < parts && least > most_bytes; ++part) {
    const long before = resident_pages();
    for (long i = 0; i < repeats; ++i) {
      long mine = rank, all = -1;
      MPI_Request request;
      MPI_Iallreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check(all == sum_of_ranks(ranks), "a sum again and again");
    }
    const long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
    if (grown < least) least = grown;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD); /* all go on, or none */
  }
  check(least <= most_bytes, "memory grows");
  if (rank == 0) printf("nonblocking: %ld repeats, memory grown by %ld KiB\n", repeats, least / 1024);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  post_before_a_message();
  many_on_several();
  beside_no_request();
  freed_meanwhile();
  types_and_operators_freed();
  no_growth(argc > 1 ? atol(argv[1]) : 20000);
  request_freed();
  if (rank == 0) printf("nonblocking: right\n");
  MPI_Finalize();
  return 0;
}
