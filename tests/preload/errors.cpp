// Wrong arguments give the error the host gives: the same class from the function, the same calls of the error handler.
// Each case is made twice on an accelerated communicator: through the program's symbol, and through the MPI library's
// own.
#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/preload/plan_used.h"

namespace {

int handled = 0;
void count_handled(MPI_Comm*, int*, ...) { ++handled; }

struct Functions {
  decltype(&MPI_Barrier) barrier = MPI_Barrier;
  decltype(&MPI_Bcast) bcast = MPI_Bcast;
  decltype(&MPI_Reduce) reduce = MPI_Reduce;
  decltype(&MPI_Allreduce) allreduce = MPI_Allreduce;
  decltype(&MPI_Allgather) allgather = MPI_Allgather;
  decltype(&MPI_Gather) gather = MPI_Gather;
  decltype(&MPI_Scatter) scatter = MPI_Scatter;
  decltype(&MPI_Alltoall) alltoall = MPI_Alltoall;
  decltype(&MPI_Reduce_scatter) reduce_scatter = MPI_Reduce_scatter;
  decltype(&MPI_Ibcast) ibcast = MPI_Ibcast;
  decltype(&MPI_Iallreduce) iallreduce = MPI_Iallreduce;
  decltype(&MPI_Igather) igather = MPI_Igather;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) std::abort();
}

Functions library_functions() {
  void* library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen("libmpich.so.12", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) std::abort();
  Functions functions;
  find(library, "PMPI_Barrier", functions.barrier);
  find(library, "PMPI_Bcast", functions.bcast);
  find(library, "PMPI_Reduce", functions.reduce);
  find(library, "PMPI_Allreduce", functions.allreduce);
  find(library, "PMPI_Allgather", functions.allgather);
  find(library, "PMPI_Gather", functions.gather);
  find(library, "PMPI_Scatter", functions.scatter);
  find(library, "PMPI_Alltoall", functions.alltoall);
  find(library, "PMPI_Reduce_scatter", functions.reduce_scatter);
  find(library, "PMPI_Ibcast", functions.ibcast);
  find(library, "PMPI_Iallreduce", functions.iallreduce);
  find(library, "PMPI_Igather", functions.igather);
  return functions;
}

std::array<int, 64> a, b;
MPI_Request request;
MPI_Datatype uncommitted, pair_of_ints;

// Errors that every rank sees by itself, before anything is sent. `comm` returns errors.
struct Case {
  const char* name;
  int (*call)(const Functions&, MPI_Comm comm);
};
const Case cases[] = {
    {"null communicator", [](const Functions& f, MPI_Comm) { return f.barrier(MPI_COMM_NULL); }},
    {"bcast, negative count", [](const Functions& f, MPI_Comm c) { return f.bcast(a.data(), -1, MPI_INT, 0, c); }},
    {"bcast, no type", [](const Functions& f, MPI_Comm c) { return f.bcast(a.data(), 1, MPI_DATATYPE_NULL, 0, c); }},
    {"bcast, no such root", [](const Functions& f, MPI_Comm c) { return f.bcast(a.data(), 1, MPI_INT, 99, c); }},
    {"bcast, negative root", [](const Functions& f, MPI_Comm c) { return f.bcast(a.data(), 1, MPI_INT, -5, c); }},
#ifndef MPICH_VERSION  // whose 4.0 looks at neither, and crashes
    {"bcast, in place", [](const Functions& f, MPI_Comm c) { return f.bcast(MPI_IN_PLACE, 1, MPI_INT, 0, c); }},
    {"allreduce, negative count",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), b.data(), -3, MPI_INT, MPI_SUM, c); }},
#endif
    {"bcast, uncommitted type", [](const Functions& f, MPI_Comm c) { return f.bcast(a.data(), 1, uncommitted, 0, c); }},
    {"allreduce, no operator",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), b.data(), 1, MPI_INT, MPI_OP_NULL, c); }},
    {"allreduce, operator for windows",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), b.data(), 1, MPI_INT, MPI_REPLACE, c); }},
    {"allreduce, bits of a double",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), b.data(), 1, MPI_DOUBLE, MPI_BAND, c); }},
    {"allreduce, sum of a derived type",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), b.data(), 1, pair_of_ints, MPI_SUM, c); }},
    {"allreduce, receive in place",
     [](const Functions& f, MPI_Comm c) { return f.allreduce(a.data(), MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, c); }},
    {"reduce, no such root",
     [](const Functions& f, MPI_Comm c) { return f.reduce(a.data(), b.data(), 1, MPI_INT, MPI_SUM, 99, c); }},
    {"gather, no such root",
     [](const Functions& f, MPI_Comm c) { return f.gather(a.data(), 1, MPI_INT, b.data(), 1, MPI_INT, 99, c); }},
    {"scatter, no such root",
     [](const Functions& f, MPI_Comm c) { return f.scatter(a.data(), 1, MPI_INT, b.data(), 1, MPI_INT, -9, c); }},
    {"allgather, negative count",
     [](const Functions& f, MPI_Comm c) { return f.allgather(a.data(), 1, MPI_INT, b.data(), -1, MPI_INT, c); }},
    {"alltoall, no type",
     [](const Functions& f, MPI_Comm c) {
       return f.alltoall(a.data(), 1, MPI_INT, b.data(), 1, MPI_DATATYPE_NULL, c);
     }},
    {"ibcast, negative count",
     [](const Functions& f, MPI_Comm c) { return f.ibcast(a.data(), -1, MPI_INT, 0, c, &request); }},
    {"ibcast, uncommitted type",
     [](const Functions& f, MPI_Comm c) { return f.ibcast(a.data(), 1, uncommitted, 0, c, &request); }},
    {"ibcast, no such root",
     [](const Functions& f, MPI_Comm c) { return f.ibcast(a.data(), 1, MPI_INT, 99, c, &request); }},
    {"iallreduce, no operator",
     [](const Functions& f, MPI_Comm c) {
       return f.iallreduce(a.data(), b.data(), 1, MPI_INT, MPI_OP_NULL, c, &request);
     }},
    {"iallreduce, bits of a double",
     [](const Functions& f, MPI_Comm c) {
       return f.iallreduce(a.data(), b.data(), 1, MPI_DOUBLE, MPI_BAND, c, &request);
     }},
    {"igather, no such root",
     [](const Functions& f, MPI_Comm c) {
       return f.igather(a.data(), 1, MPI_INT, b.data(), 1, MPI_INT, -9, c, &request);
     }},
};

struct Answer {
  int error_class, handled;
};

Answer answer(const Case& one, const Functions& functions, MPI_Comm comm) {
  handled = 0;
  const int code = one.call(functions, comm);
  Answer result{MPI_SUCCESS, handled};
  MPI_Error_class(code, &result.error_class);
  return result;
}

int compare(MPI_Comm comm, const char* handler) {
  const Functions ours, library = library_functions();
  int differing = 0;
  for (const Case& one : cases) {
    const Answer got = answer(one, ours, comm), wanted = answer(one, library, comm);
    if (got.error_class == wanted.error_class && got.handled == wanted.handled) continue;
    ++differing;
    std::printf("%s, %s: class %d and %d calls of the handler, not %d and %d\n", handler, one.name, got.error_class,
                got.handled, wanted.error_class, wanted.handled);
  }
  return differing;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Type_contiguous(2, MPI_INT, &pair_of_ints);
  MPI_Type_commit(&pair_of_ints);
  for (int call = 0; call < 5; ++call) MPI_Allreduce(a.data(), b.data(), 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!accelerated() && strcmp(plan_used(), "absent") != 0) ++failures;

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  failures += compare(MPI_COMM_WORLD, "returning");
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(count_handled, &counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  failures += compare(MPI_COMM_WORLD, "counting");
  MPI_Errhandler_free(&counting);

  int sum = 0, one = 1, ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != ranks) ++failures;
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&pair_of_ints);
  if (rank == 0) std::printf("errors: %d differ from the host's\n", failures);
  MPI_Finalize();
  return failures != 0;
}
