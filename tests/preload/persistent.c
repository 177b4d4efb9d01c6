/* Persistent collectives as programs use them: started in another order on each rank and many times, many under way on
 * several communicators beside blocking and non-blocking calls and persistent messages, completed in any way, of types
 * and communicators that are freed, and no memory that grows. With arguments: repeats of the last part. Prints
 * "persistent: right" at the end; anything wrong ends the job. Some requests are never freed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan_used.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

enum { communicators = 4, outstanding = 64, at_once = 8, most_slots = 4096 };

static int rank, ranks;
static MPI_Status statuses[communicators * outstanding + 2];

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "persistent: wrong: %s, rank %d\n", what, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static long sum_of_ranks(long members) { return members * (members - 1) / 2; }

static MPI_Request sum_request(long* mine, long* all, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PERSISTENT(Allreduce)(mine, all, 1, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL, &request);
  return request;
}

/* One request, restarted; waits for what is not active return at once. */
static void restarted(void) {
  long mine = 0, all = -1;
  MPI_Request request = sum_request(&mine, &all, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < 1000; ++i) {
    mine = rank + i;
    MPI_Start(&request);
    int done = 0;
    if (i % 3 == 0)
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    else if (i % 3 == 1)
      while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    else
      while (!done) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    check(all == sum_of_ranks(ranks) + (long)ranks * i, "a sum of a request started again");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(request != MPI_REQUEST_NULL, "a persistent request after its completion");
  }
  MPI_Request_free(&request);
  check(request == MPI_REQUEST_NULL, "a freed request");
}

static void complete_all(MPI_Request requests[], int count, int way) {
  int left = count, done = 0, index = 0, some = 0, indices[at_once];
  switch (way % 6) {
    case 0:
      MPI_Waitall(count, requests, statuses);
      break;
    case 1:
      for (; left > 0; --left) MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
      break;
    case 2:
      for (; left > 0; left -= some) MPI_Waitsome(count, requests, &some, indices, statuses);
      break;
    case 3:
      while (!done) MPI_Testall(count, requests, &done, statuses);
      break;
    case 4:
      for (int i = 0; i < count; ++i) MPI_Wait(&requests[(i * 5 + rank) % count], MPI_STATUS_IGNORE);
      break;
    default:
      while (left > 0) {
        MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE);
        if (done) --left;
      }
  }
}

/* Each rank starts in an order of its own. */
static void started_in_any_order(void) {
  long mine[at_once], all[at_once];
  MPI_Request requests[at_once];
  for (int k = 0; k < at_once; ++k) requests[k] = sum_request(&mine[k], &all[k], MPI_COMM_WORLD);
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < at_once; ++k) mine[k] = rank + k + i, all[k] = -1;
    for (int k = 0; k < at_once; ++k) MPI_Start(&requests[(k * 3 + rank * (i % 4)) % at_once]);
    complete_all(requests, at_once, i + rank);
    for (int k = 0; k < at_once; ++k)
      check(all[k] == sum_of_ranks(ranks) + (long)ranks * (k + i), "a sum of those started in different orders");
  }
  for (int k = 0; k < at_once; ++k) MPI_Request_free(&requests[k]);
}

/* The first rank has started both when it waits for the second one, which is the only one that the last rank has. */
static void independent_of_each_other(void) {
  long mine[2] = {rank, 2 * rank}, all[2] = {-1, -1};
  MPI_Request requests[2];
  for (int k = 0; k < 2; ++k) requests[k] = sum_request(&mine[k], &all[k], MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i) {
    int token = i;
    all[0] = all[1] = -1;
    if (rank == ranks - 1 && ranks > 1) {
      MPI_Start(&requests[1]);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Start(&requests[0]);
    } else {
      MPI_Start(&requests[0]);
      MPI_Start(&requests[1]);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      if (rank == 0 && ranks > 1) MPI_Send(&token, 1, MPI_INT, ranks - 1, 7, MPI_COMM_WORLD);
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check(all[0] == sum_of_ranks(ranks) && all[1] == 2 * sum_of_ranks(ranks), "a sum that waits for another one");
  }
  for (int k = 0; k < 2; ++k) MPI_Request_free(&requests[k]);
}

/* Some of the communicators have other members on other ranks. */
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
  enum { count = communicators * outstanding };
  for (int i = 0; i < count; ++i) requests[i] = sum_request(&mine[i], &all[i], comms[i % communicators]);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < count; ++i) mine[i] = rank + i + round, all[i] = -1;
    for (int i = 0; i < count; ++i) MPI_Start(&requests[(i * 7 + rank * 13) % count]);
    long blocking = -1, posted = -1, one = 1;
    MPI_Request other;
    MPI_Iallreduce(&one, &posted, 1, MPI_LONG, MPI_SUM, comms[round % communicators], &other);
    MPI_Allreduce(&one, &blocking, 1, MPI_LONG, MPI_SUM, comms[round % communicators]);
    check(blocking == members[round % communicators], "a blocking sum in between");
    for (int i = 0; i < count; ++i) MPI_Wait(&requests[(i * 11 + rank) % count], MPI_STATUS_IGNORE);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    check(posted == members[round % communicators], "a posted sum in between");
    for (int i = 0; i < count; ++i) {
      const int c = i % communicators, step = c % 2 == 0 ? 1 : 2;
      const long of_ranks = (long)members[c] * first[c] + step * sum_of_ranks(members[c]);
      check(all[i] == of_ranks + (long)members[c] * (i + round), "one sum of many");
    }
  }
  for (int i = 0; i < count; ++i) MPI_Request_free(&requests[i]);
  for (int c = 0; c < communicators; ++c) MPI_Comm_free(&comms[c]);
}

static void beside_messages(void) {
  long mine = 0, all = -1, sent = 0, received = -1;
  MPI_Request requests[4];
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  requests[0] = sum_request(&mine, &all, MPI_COMM_WORLD);
  MPI_Recv_init(&received, 1, MPI_LONG, before, 3, MPI_COMM_WORLD, &requests[1]);
  PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  MPI_Send_init(&sent, 1, MPI_LONG, next, 3, MPI_COMM_WORLD, &requests[3]);
  for (int i = 0; i < 100; ++i) {
    mine = rank + i, sent = rank * 1000 + i;
    MPI_Startall(4, requests);
    complete_all(requests, 4, i);
    check(all == sum_of_ranks(ranks) + (long)ranks * i && received == before * 1000 + i, "what was started together");
  }
  for (int k = 0; k < 4; ++k) MPI_Request_free(&requests[k]);
}

static void types_freed(void) {
  long all[64] = {0}, own = rank;
  MPI_Datatype every_other, other;
  MPI_Request request;
  MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &every_other);
  MPI_Type_commit(&every_other);
  PERSISTENT(Allgather)(&own, 1, MPI_LONG, all, 1, every_other, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Type_free(&every_other);
  MPI_Type_contiguous(3, MPI_INT, &other); /* takes the place of the freed one */
  MPI_Type_commit(&other);
  for (int i = 0; i < 5; ++i) {
    own = rank + i;
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < ranks && r < 32; ++r)
      check(all[2 * r] == r + i && all[2 * r + 1] == 0, "persistent data of a freed type");
  }
  MPI_Type_free(&other);
  MPI_Request_free(&request);
}

static void add(void* left, void* right, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((long*)right)[i] += ((long*)left)[i];
}

/* A communicator may go before the requests on it. Open MPI's own do not survive that, and grow. */
static void communicator_freed(void) {
  for (int i = 0; i < 3; ++i) {
    long mine[2] = {rank, 0}, all[2] = {-1, -1};
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    requests[0] = sum_request(&mine[0], &all[0], comm);
    PERSISTENT(Bcast)(&mine[1], 1, MPI_LONG, ranks - 1, comm, MPI_INFO_NULL, &requests[1]);
    if (i == 0) MPI_Startall(2, requests);
    MPI_Comm_free(&comm);
    mine[1] = rank == ranks - 1 ? 42 + i : mine[1];
    if (i != 0) MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    check(all[0] == sum_of_ranks(ranks) && (i == 0 || mine[1] == 42 + i), "what outlives its communicator");
    for (int k = 0; k < 2; ++k) MPI_Request_free(&requests[k]);
  }
}

static void operator_of_the_program(void) {
  long mine = rank, all = -1;
  MPI_Op op;
  MPI_Request request;
  MPI_Op_create(add, 1, &op);
  PERSISTENT(Allreduce)(&mine, &all, 1, MPI_LONG, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int i = 0; i < 3; ++i) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(all == sum_of_ranks(ranks), "a sum by an operator of the program");
  }
  MPI_Request_free(&request);
  MPI_Op_free(&op);
}

/* More than fit into a communicator's table; the last ones are the host's. */
static void very_many(void) {
  static MPI_Request requests[most_slots + 100];
  static long mine[most_slots + 100], all[most_slots + 100];
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < most_slots + 100; ++i) {
    requests[i] = sum_request(&mine[i], &all[i], comm);
    mine[i] = rank + i;
  }
  for (int i = most_slots - 100; i < most_slots + 100; ++i) MPI_Start(&requests[i]);
  for (int i = most_slots - 100; i < most_slots + 100; ++i) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    check(all[i] == sum_of_ranks(ranks) + (long)ranks * i, "a sum of very many");
  }
  for (int i = 0; i < most_slots + 100; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_free(&comm);
}

static long resident_pages(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  check(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2, "/proc/self/statm");
  fclose(file);
  return resident;
}

static void no_growth(long repeats) {
  long before = 0;
  for (long i = 0; i < repeats + 1000; ++i) {
    if (i == 1000) before = resident_pages();
    long mine = rank, all = -1;
    MPI_Request request = sum_request(&mine, &all, MPI_COMM_WORLD);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(all == sum_of_ranks(ranks), "a sum of a request of its own");
    MPI_Request_free(&request);
  }
  const long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
  check(grown <= 64 * 1024, "memory grows");
}

int main(int argc, char** argv) {
  int provided;
  static long mine, all;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Request never_freed = sum_request(&mine, &all, MPI_COMM_WORLD);
  const char* plan = plan_used();
  MPI_Start(&never_freed);
  MPI_Wait(&never_freed, MPI_STATUS_IGNORE);
  restarted();
  started_in_any_order();
  independent_of_each_other();
  many_on_several();
  beside_messages();
  types_freed();
  const int ours = strcmp(plan, "host") != 0 && strcmp(plan, "absent") != 0;
  if (ours) communicator_freed();
  operator_of_the_program();
  if (argc > 2) very_many();
  if (ours) no_growth(argc > 1 ? atol(argv[1]) : 10000);
  if (rank == 0) printf("persistent: right, plan %s\n", plan);
  MPI_Finalize();
  return 0;
}
