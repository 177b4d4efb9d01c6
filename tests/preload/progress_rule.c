/* MPI's rule of progress: a rank that waits in any function of MPI does its part of the collectives that it has posted.
 * Rank 0 posts one and waits for something that the others give only after that collective's end. Prints
 * "progress_rule: right"; a case that does not end is named when the time is up. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { largest = 1 << 18, seconds_a_case = 30 };

static int rank, ranks;
static MPI_Comm other; /* that the collective does not use */
static const char* current = "nothing";

static void too_late(int signal) {
  (void)signal;
  static const char text[] = "progress_rule: no end: ";
  if (write(2, text, sizeof text - 1) < 0 || write(2, current, strlen(current)) < 0 || write(2, "\n", 1) < 0) _exit(2);
  _exit(1);
}

/* ---- What rank 0 waits in; the others take part after the collective's end ---- */

static void one_to_zero(void) {
  int token = rank;
  if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 1, other);
}
static void one_from_zero(void) {
  int token;
  if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 1, other, MPI_STATUS_IGNORE);
}

static void receive(void) {
  int token;
  if (rank == 0)
    MPI_Recv(&token, 1, MPI_INT, 1, 1, other, MPI_STATUS_IGNORE);
  else
    one_to_zero();
}
static void send_synchronously(void) {
  int token = 0;
  if (rank == 0)
    MPI_Ssend(&token, 1, MPI_INT, 1, 1, other);
  else
    one_from_zero();
}
static void send_much(void) {
  static char much[1 << 22];
  if (rank == 0) MPI_Send(much, sizeof much, MPI_CHAR, 1, 1, other);
  if (rank == 1) MPI_Recv(much, sizeof much, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE);
}
static void exchange(void) {
  int in, out = rank;
  if (rank < 2) MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 1, &in, 1, MPI_INT, 1 - rank, 1, other, MPI_STATUS_IGNORE);
}
static void probe(void) {
  if (rank == 0) MPI_Probe(1, 1, other, MPI_STATUS_IGNORE);
  receive();
}
static void matched_probe(void) {
  int token;
  MPI_Message message;
  if (rank != 0) return one_to_zero();
  MPI_Mprobe(1, 1, other, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

enum Way { wait_one, wait_all, wait_any, wait_some, test_one, start_and_wait };
static void complete(enum Way way) {
  int token, done = 0, index;
  MPI_Request request;
  MPI_Status status[1];
  if (rank != 0) return one_to_zero();
  if (way == start_and_wait) {
    MPI_Recv_init(&token, 1, MPI_INT, 1, 1, other, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return;
  }
  MPI_Irecv(&token, 1, MPI_INT, 1, 1, other, &request);
  if (way == wait_one) MPI_Wait(&request, status);
  if (way == wait_all) MPI_Waitall(1, &request, status);
  if (way == wait_any) MPI_Waitany(1, &request, &index, status);
  if (way == wait_some) MPI_Waitsome(1, &request, &done, &index, status);
  while (way == test_one && !done) MPI_Test(&request, &done, status);
}
static void by_wait(void) { complete(wait_one); }
static void by_waitall(void) { complete(wait_all); }
static void by_waitany(void) { complete(wait_any); }
static void by_waitsome(void) { complete(wait_some); }
static void by_test(void) { complete(test_one); }
static void persistent(void) { complete(start_and_wait); }

static void barrier(void) { MPI_Barrier(other); }
static void broadcast(void) {
  int value = rank;
  MPI_Bcast(&value, 1, MPI_INT, 1, other);
}
static void sum(void) {
  int mine = 1, all;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, other);
}
static void gather(void) {
  int mine = rank, all[64];
  MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, other);
}
static void everything_to_everyone(void) {
  int out[64] = {0}, in[64];
  MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, other);
}
static void scan(void) { /* the last rank waits for all others, and rank 0 for none: the other way round */
  int mine = 1, sums;
  MPI_Comm turned;
  MPI_Comm_split(other, 0, ranks - rank, &turned);
  MPI_Scan(&mine, &sums, 1, MPI_INT, MPI_SUM, turned);
  MPI_Comm_free(&turned);
}
static void duplicate(void) {
  MPI_Comm comm;
  MPI_Comm_dup(other, &comm);
  MPI_Comm_free(&comm);
}
static void split_node(void) {
  MPI_Comm comm;
  MPI_Comm_split_type(other, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
  MPI_Comm_free(&comm);
}
static void create_from_group(void) {
  MPI_Group group;
  MPI_Comm comm;
  MPI_Comm_group(other, &group);
  MPI_Comm_create_group(other, group, 3, &comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}
static void intercommunicator(void) {
  MPI_Comm half, inter, merged;
  MPI_Comm_split(other, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, other, 1 - rank % 2, 4, &inter);
  MPI_Intercomm_merge(inter, 0, &merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}
static void fence(void) {
  static int memory[4];
  int value = rank;
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, other, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}
static void host_nonblocking(void) {
  int mine = 1, all;
  MPI_Request request;
  MPI_Iscan(&mine, &all, 1, MPI_INT, MPI_SUM, other, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(other);
}

struct Case {
  const char* name;
  void (*take_part)(void);
};
static const struct Case cases[] = {
    {"MPI_Recv", receive},
    {"MPI_Ssend", send_synchronously},
    {"MPI_Send of much", send_much},
    {"MPI_Sendrecv", exchange},
    {"MPI_Probe", probe},
    {"MPI_Mprobe", matched_probe},
    {"MPI_Wait", by_wait},
    {"MPI_Waitall", by_waitall},
    {"MPI_Waitany", by_waitany},
    {"MPI_Waitsome", by_waitsome},
    {"MPI_Test", by_test},
    {"MPI_Start", persistent},
    {"MPI_Barrier", barrier},
    {"MPI_Bcast", broadcast},
    {"MPI_Allreduce", sum},
    {"MPI_Gather", gather},
    {"MPI_Alltoall", everything_to_everyone},
    {"MPI_Comm_split and MPI_Scan", scan},
    {"MPI_Comm_dup", duplicate},
    {"MPI_Comm_split_type", split_node},
    {"MPI_Comm_create_group", create_from_group},
    {"MPI_Intercomm_create", intercommunicator},
    {"MPI_Win_create and MPI_Win_fence", fence},
    {"MPI_Iscan", host_nonblocking},
};

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "progress_rule: wrong: %s in %s, rank %d\n", what, current, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 0 comes late once in a while, so that the others wait for it. */
static void one_case(const struct Case* one, MPI_Comm comm, int count, int late) {
  static double mine[largest / sizeof(double)], all[largest / sizeof(double)];
  MPI_Request request;
  current = one->name;
  alarm(seconds_a_case);
  for (int i = 0; i < count; ++i) mine[i] = rank + i;
  if (rank == 0 && late) usleep(2000);
  MPI_Iallreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm, &request);
  if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  one->take_part();
  if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  const double base = ranks * (ranks - 1) / 2;
  check(all[0] == base && all[count - 1] == base + (double)ranks * (count - 1), "the sum");
}

/* A blocking call waits for what was posted before it, and the other rank for a message until then. */
static void message_before_the_wait(MPI_Comm comm) {
  static char much[1 << 22];
  int mine = 1, all = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  current = "MPI_Barrier after MPI_Isend and MPI_Iallreduce";
  alarm(seconds_a_case);
  if (rank == 0) MPI_Isend(much, sizeof much, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &requests[0]);
  if (rank == 1) MPI_Recv(much, sizeof much, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
  MPI_Barrier(comm);
  MPI_Waitall(2, requests, statuses);
  check(all == ranks, "the sum");
}

int main(int argc, char** argv) {
  static const int counts[] = {1, 1 << 10, largest / sizeof(double)};
  int provided;
  MPI_Comm comm;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  signal(SIGALRM, too_late);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 2; ++i) MPI_Barrier(comm); /* sets the communicator up */
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(comm); /* for any length */
  for (int i = 0; i < 20; ++i) message_before_the_wait(comm);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    MPI_Comm_dup(MPI_COMM_WORLD, &other); /* whose calls are the host's first */
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; ++k)
      for (int late = 0; late < 2; ++late) one_case(&cases[c], comm, counts[k], late);
    MPI_Comm_free(&other);
  }
  MPI_Comm_free(&comm);
  if (rank == 0) printf("progress_rule: right\n");
  MPI_Finalize();
  return 0;
}
