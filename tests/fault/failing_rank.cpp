// A job whose error handler returns errors, and of which one rank's single copies are forbidden in the middle, or its
// packing (late_denial.cpp). All ranks must get an error soon, and again from the next call.
//
//   failing_rank RANK [packing]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
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
  const bool packing = argc > 2 && std::strcmp(argv[2], "packing") == 0;
  const int wrong = run(rank, argc > 1 ? std::atoi(argv[1]) : 0, packing);
  std::printf("rank %d: %d wrong\n", rank, wrong);
  std::fflush(stdout);
  MPI_Finalize();
  return wrong;
}
