// What MPI allows at its edges: types of size 0, counts of 0 with no buffer at all, types that hold addresses,
// attributes and error handlers of the program's communicators. On accelerated communicators, blocking and not.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <vector>

#include "tests/preload/plan_used.h"

namespace {

int rank = 0, ranks = 0, failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::printf("edges: wrong: %s, rank %d\n", what, rank);
}

void sum_is_right(MPI_Comm comm, const char* what) {
  int one = 1, sum = 0, members = 0;
  MPI_Comm_size(comm, &members);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  check(sum == members, what);
}

// ---- Nothing at all ----
//
// Open MPI's own bcast waits for ever where one rank has a count of 0 and another one types of size 0; MPICH's
// alltoallv takes two null buffers for the same one.

void wait_for(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

void blocking_nothing(int count, MPI_Datatype type, const std::vector<int>& zeros, void* receive) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Bcast(nullptr, count, type, ranks - 1, comm);
  MPI_Gather(nullptr, count, type, receive, count, type, 0, comm);
  MPI_Scatter(nullptr, count, type, receive, count, type, 0, comm);
  MPI_Allgather(nullptr, count, type, receive, count, type, comm);
  MPI_Alltoall(nullptr, count, type, receive, count, type, comm);
  MPI_Allgatherv(nullptr, 0, type, nullptr, zeros.data(), zeros.data(), type, comm);
  MPI_Gatherv(nullptr, 0, type, nullptr, zeros.data(), zeros.data(), type, 0, comm);
  MPI_Scatterv(nullptr, zeros.data(), zeros.data(), type, nullptr, 0, type, 0, comm);
}

void posted_nothing(int count, MPI_Datatype type, const std::vector<int>& zeros, void* receive) {
  MPI_Comm comm = MPI_COMM_WORLD;
  std::array<MPI_Request, 6> requests;
  MPI_Ibcast(nullptr, count, type, ranks - 1, comm, &requests[0]);
  MPI_Igather(nullptr, count, type, receive, count, type, 0, comm, &requests[1]);
  MPI_Iscatter(nullptr, count, type, receive, count, type, 0, comm, &requests[2]);
  MPI_Iallgather(nullptr, count, type, receive, count, type, comm, &requests[3]);
  MPI_Ialltoall(nullptr, count, type, receive, count, type, comm, &requests[4]);
  MPI_Iallgatherv(nullptr, 0, type, nullptr, zeros.data(), zeros.data(), type, comm, &requests[5]);
  std::array<MPI_Status, 6> statuses;
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
}

void nothing_at_all() {
  int room = 0;
  MPI_Datatype empty = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  const std::vector<int> zeros(static_cast<std::size_t>(ranks), 0);
  for (int round = 0; round < 3; ++round) {
    blocking_nothing(0, MPI_DOUBLE, zeros, nullptr);
    blocking_nothing(5, empty, zeros, &room);
    posted_nothing(0, MPI_DOUBLE, zeros, nullptr);
    posted_nothing(5, empty, zeros, &room);
    MPI_Allreduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce_scatter(nullptr, nullptr, zeros.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(nullptr, nullptr, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sum_is_right(MPI_COMM_WORLD, "a sum after calls of no data");
  }
  MPI_Type_free(&empty);
}

// Only the last rank has data; the others name no buffers.
void nothing_at_some_ranks() {
  const bool last = rank == ranks - 1;
  std::vector<int> counts(static_cast<std::size_t>(ranks), 0), places(static_cast<std::size_t>(ranks), -77);
  counts.back() = 3;
  places.back() = 1;
  const std::array<int, 3> mine = {5, 6, 7};
  std::array<int, 5> all = {-1, -1, -1, -1, -1};
  MPI_Allgatherv(last ? mine.data() : nullptr, last ? 3 : 0, MPI_INT, all.data(), counts.data(), places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  check(all == std::array<int, 5>{-1, 5, 6, 7, -1}, "allgatherv of one rank's data");
  std::array<int, 3> part = {-1, -1, -1};
  MPI_Reduce_scatter(mine.data(), last ? part.data() : nullptr, counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(!last || part == std::array<int, 3>{5 * ranks, 6 * ranks, 7 * ranks}, "reduce_scatter to one rank");
}

// ---- Types that hold addresses ----

MPI_Datatype absolute(std::vector<int>& first, std::vector<int>& second) {
  const int lengths[] = {static_cast<int>(first.size()), static_cast<int>(second.size())};
  MPI_Aint addresses[2];
  MPI_Get_address(first.data(), &addresses[0]);
  MPI_Get_address(second.data(), &addresses[1]);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

void addresses_in_types(std::size_t count) {
  std::vector<int> first(count, rank), second(2 * count, 10 * rank);
  MPI_Datatype type = absolute(first, second);
  for (int root = 0; root < ranks; ++root) {
    first.assign(count, rank + 100 * root);
    second.assign(2 * count, 10 * rank + 100 * root);
    MPI_Bcast(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD);
    check(first == std::vector<int>(count, root * 101) && second == std::vector<int>(2 * count, root * 110),
          "bcast at MPI_BOTTOM");
    first.assign(count, rank + 1000 * root);
    MPI_Request request;
    MPI_Ibcast(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD, &request);
    wait_for(request);
    check(first == std::vector<int>(count, root * 1001), "ibcast at MPI_BOTTOM");
  }
  first.assign(count, rank + 1);
  second.assign(2 * count, rank + 1);
  std::vector<int> all(3 * count * static_cast<std::size_t>(ranks));
  MPI_Allgather(MPI_BOTTOM, 1, type, all.data(), static_cast<int>(3 * count), MPI_INT, MPI_COMM_WORLD);
  bool right = true;
  for (std::size_t i = 0; i < all.size(); ++i) right &= all[i] == static_cast<int>(i / (3 * count)) + 1;
  check(right, "allgather from MPI_BOTTOM");
  MPI_Type_free(&type);
}

// ---- Attributes and error handlers ----

int copies = 0, deletions = 0, handled = 0;

int copy_attribute(MPI_Comm, int, void* state, void* value, void* copied, int* flag) {
  ++copies;
  check(state == &copies, "the state of a copy function");
  *static_cast<void**>(copied) = static_cast<char*>(value) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

int delete_attribute(MPI_Comm, int, void*, void*) {
  ++deletions;
  return MPI_SUCCESS;
}

void count_handled(MPI_Comm*, int*, ...) { ++handled; }

void accelerate(MPI_Comm comm) {
  for (int call = 0; call < 5; ++call) sum_is_right(comm, "a sum");
  std::vector<int> many(100000, 1), sums(many.size());
  MPI_Allreduce(many.data(), sums.data(), static_cast<int>(many.size()), MPI_INT, MPI_SUM, comm);
  check(accelerated() || plan_used()[0] == 'a', "no plan");
}

// The program's own functions are called for its own calls, not for Plait's communicators beside it.
void attributes() {
  static char memory[8];
  int keyval = MPI_KEYVAL_INVALID, found = 0;
  char* value = nullptr;
  MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, &copies);
  MPI_Comm_set_attr(comm, keyval, memory);
  accelerate(comm);
  check(copies == 0 && deletions == 0, "attributes copied by a set-up");
  MPI_Comm_dup(comm, &copy);
  check(copies == 1 && deletions == 0, "attributes copied by MPI_Comm_dup");
  MPI_Comm_get_attr(copy, keyval, &value, &found);
  check(found != 0 && value == memory + 1, "a copied attribute");
  accelerate(copy);
  check(copies == 1, "attributes copied by the set-up of a copy");
  MPI_Comm_delete_attr(copy, keyval);
  check(deletions == 1, "a deleted attribute");
  MPI_Comm_free(&copy);
  check(deletions == 1, "attributes deleted with a copy that has none");
  MPI_Comm_free(&comm);
  check(copies == 1 && deletions == 2, "attributes deleted with their communicator");
  MPI_Comm_free_keyval(&keyval);
}

// A duplicate has its own error handler, whatever its collectives ran on before.
void error_handlers() {
  MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI_Errhandler counting = MPI_ERRHANDLER_NULL, found = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(count_handled, &counting);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, counting);
  accelerate(comm);
  MPI_Comm_dup(comm, &copy);
  accelerate(copy);
  MPI_Comm_get_errhandler(copy, &found);
  check(found == counting, "the error handler of a duplicate");
  MPI_Errhandler_free(&found);
  check(handled == 0, "an error handler called without an error");
  int datum = 0;
  check(MPI_Bcast(&datum, 1, MPI_INT, 99, copy) != MPI_SUCCESS && handled == 1, "the error handler of a wrong root");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibcast(&datum, 1, MPI_INT, 99, copy, &request) != MPI_SUCCESS && handled == 2,
        "the error handler of a wrong root, not blocking");
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  check(MPI_Bcast(&datum, 1, MPI_INT, 99, copy) != MPI_SUCCESS && handled == 2, "a handler that was replaced");
  sum_is_right(copy, "a sum after errors");
  MPI_Errhandler_free(&counting);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  accelerate(MPI_COMM_WORLD);
  nothing_at_all();
  nothing_at_some_ranks();
  for (const std::size_t count : {std::size_t{1}, std::size_t{300}, std::size_t{20000}}) addresses_in_types(count);
  attributes();
  error_handlers();
  if (rank == 0) std::printf("edges: %s\n", failures == 0 ? "right" : "wrong");
  MPI_Finalize();
  return failures != 0;
}
