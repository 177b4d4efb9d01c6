// A job whose error handler returns errors, and of which one rank's single copies are forbidden in the middle, or its
// packing (late_denial.cpp). All ranks must get an error soon, and again from the next call.
//
//   failing_rank RANK [packing|set-up]
//
// set-up: the others' next call needs a longer set-up than the one in which the rank fails, which not all of them
// notice in that call.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/fault/late_denial.h"

namespace {

constexpr int count = 1 << 20;
constexpr double most_seconds = 10;

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

// The data of the calls: contiguous, or every other one of twice as many elements.
struct Data {
  explicit Data(bool gaps) : given(gaps ? 2 * count : count, 1.0f), taken(count), type(MPI_FLOAT) {
    if (!gaps) return;
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(MPI_FLOAT, 0, 2 * sizeof(float), &pair);
    MPI_Type_commit(&pair);
    type = pair;
  }
  std::vector<float> given, taken;
  MPI_Datatype type;
};

int exchange(Data& data) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return MPI_Alltoall(data.given.data(), count / ranks, data.type, data.taken.data(), count / ranks, MPI_FLOAT,
                      MPI_COMM_WORLD);
}

// A gather of 128 B a rank, in which only the root needs the failing one.
int gather_short(Data& data) {
  return MPI_Gather(data.given.data(), 32, data.type, data.taken.data(), 32, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

int run_before_set_up(int rank, int failing) {
  Data data(true);
  for (int call = 0; call < 5; ++call)
    if (gather_short(data) != MPI_SUCCESS) return 1;
  if (rank == failing) deny_packing();
  const double begin = MPI_Wtime();
  int error = gather_short(data);
  if (error == MPI_SUCCESS) error = exchange(data);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(error).c_str());
  return error == MPI_SUCCESS || seconds > most_seconds;
}

// The number of what was not as it must be.
int run(int rank, int failing, bool packing) {
  Data data(packing);
  for (int call = 0; call < 5; ++call)
    if (exchange(data) != MPI_SUCCESS) return 1;
  if (rank == failing) packing ? deny_packing() : deny_single_copies();
  const double begin = MPI_Wtime();
  int error = MPI_SUCCESS;
  for (int call = 0; call < 5 && error == MPI_SUCCESS; ++call) error = exchange(data);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(error).c_str());
  int wrong = error == MPI_SUCCESS || seconds > most_seconds;
  if (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) ++wrong;
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int failing = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string what = argc > 2 ? argv[2] : "";
  const int wrong = what == "set-up" ? run_before_set_up(rank, failing) : run(rank, failing, what == "packing");
  std::printf("rank %d: %d wrong\n", rank, wrong);
  std::fflush(stdout);
  MPI_Finalize();
  return wrong;
}
