/* A program of which no collective blocks: every rank posts on MPI_COMM_WORLD, on duplicates and on parts of them, each
 * in an order of communicators of its own. Prints the plan of the fourth call on each, how many of ten communicators
 * are set up when they are made, and "only_posts: right" at the end. */
#include <mpi.h>
#include <stdio.h>

#include "plan_used.h"

enum { at_once = 3, calls = 4 };

static int rank, ranks;
static MPI_Status statuses[at_once];

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "only_posts: wrong: %s, rank %d\n", what, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void report(const char* where, const char* plan) {
  if (rank == 0) printf("%s %s, ", where, plan);
}

/* The plan of the last one. */
static const char* post(MPI_Comm comm) {
  int members = 0;
  MPI_Comm_size(comm, &members);
  const char* plan = "";
  for (int i = 0; i < calls; ++i) {
    long mine[at_once], all[at_once];
    MPI_Request requests[at_once];
    for (int k = 0; k < at_once; ++k) {
      mine[k] = i + k, all[k] = -1;
      MPI_Iallreduce(&mine[k], &all[k], 1, MPI_LONG, MPI_SUM, comm, &requests[k]);
      plan = plan_used();
    }
    MPI_Waitall(at_once, requests, statuses);
    for (int k = 0; k < at_once; ++k) check(all[k] == (long)members * (i + k), "a sum");
  }
  return plan;
}

/* Posts on both before it waits for either: even ranks on the first one first. */
static void post_in_any_order(MPI_Comm first, MPI_Comm second) {
  for (int i = 0; i < 50; ++i) {
    long mine = 1, all[2] = {-1, -1};
    MPI_Request requests[2];
    const int begin = (rank + i) % 2;
    for (int k = 0; k < 2; ++k) {
      const int which = (begin + k) % 2;
      MPI_Iallreduce(&mine, &all[which], 1, MPI_LONG, MPI_SUM, which == 0 ? first : second, &requests[which]);
    }
    MPI_Waitall(2, requests, statuses);
    check(all[0] == ranks && all[1] == ranks, "a sum on one of two communicators");
  }
}

/* How many of the communicators that are made of one, which is not used meanwhile, were set up at once. */
static int set_up_of_ten(MPI_Comm from) {
  enum { made = 10 };
  MPI_Comm comms[made];
  int count = 0;
  for (int k = 0; k < made; ++k) MPI_Comm_dup(from, &comms[k]);
  for (int k = 0; k < made; ++k) {
    post(comms[k]);
    count += accelerated();
    MPI_Comm_free(&comms[k]);
  }
  return count;
}

int main(int argc, char** argv) {
  MPI_Comm dup, of_dup, part, of_world;
  MPI_Request pending;
  long one = 1, sum = -1;
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &pending);
  report("world", plan_used());
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  report("dup", post(dup));
  /* One is under way while a communicator is made of its own. */
  sum = -1;
  MPI_Iallreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, dup, &pending);
  MPI_Comm_dup(dup, &of_dup);
  report("again", post(dup));
  report("of the dup", post(of_dup));
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  check(sum == ranks, "what was under way");
  post_in_any_order(dup, of_dup);
  MPI_Comm_split(of_dup, rank % 2, rank, &part);
  int members = 0;
  MPI_Comm_size(part, &members);
  const char* plan = post(part);
  report("split", members > 1 ? plan : "none");
  /* One call on MPI_COMM_WORLD is no reason yet. */
  MPI_Comm_dup(MPI_COMM_WORLD, &of_world);
  report("of the world", post(of_world));
  MPI_Comm_free(&of_world);
  const int first = set_up_of_ten(dup), unused = set_up_of_ten(dup);
  post(dup);
  const int again = set_up_of_ten(dup);
  if (rank == 0) printf("of ten %d, unused %d, used %d, ", first, unused, again);
  MPI_Comm_free(&part);
  MPI_Comm_free(&of_dup);
  MPI_Comm_free(&dup);
  if (rank == 0) printf("only_posts: right\n");
  MPI_Finalize();
  return 0;
}
