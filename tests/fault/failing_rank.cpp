// A job whose error handler returns errors, and of which one rank's single copies are forbidden in the middle
// (late_denial.cpp). All ranks must get an error soon, and again from the next call.
//
//   failing_rank RANK [persistent]
//
// persistent: of two persistent collectives, which every second rank starts in the other order.
#include <mpi.h>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

#include <array>
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

int exchange(const std::vector<float>& given, std::vector<float>& taken) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return MPI_Alltoall(given.data(), count / ranks, MPI_FLOAT, taken.data(), count / ranks, MPI_FLOAT, MPI_COMM_WORLD);
}

// The number of what was not as it must be.
int run(int rank, int failing) {
  std::vector<float> given(count, 1.0f), taken(count);
  for (int call = 0; call < 5; ++call)
    if (exchange(given, taken) != MPI_SUCCESS) return 1;
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) return 1;  // nobody is to hear of the failure in a call before
  if (rank == failing) deny_single_copies();
  const double begin = MPI_Wtime();
  int error = MPI_SUCCESS;
  for (int call = 0; call < 5 && error == MPI_SUCCESS; ++call) error = exchange(given, taken);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(error).c_str());
  int wrong = error == MPI_SUCCESS || seconds > most_seconds;
  if (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) ++wrong;
  return wrong;
}

// ---- Persistent ----

int raised = MPI_SUCCESS;  // what the communicator's error handler was told first

void note_error(MPI_Comm*, int* code, ...) {
  if (raised == MPI_SUCCESS) raised = *code;
}

// Both of them once. An error code of either.
int start_and_wait(std::array<MPI_Request, 2>& requests, int rank) {
  int error = MPI_SUCCESS;
  for (int i = 0; i < 2; ++i)
    if (const int code = MPI_Start(&requests[static_cast<std::size_t>((i + rank) % 2)]); code != MPI_SUCCESS)
      error = code;
  for (MPI_Request& request : requests)
    if (const int code = MPI_Wait(&request, MPI_STATUS_IGNORE); code != MPI_SUCCESS) error = code;
  return error;
}

int run_persistent(int rank, int failing) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  std::array<MPI_Request, 2> requests{};
  std::vector<std::vector<float>> buffers(4, std::vector<float>(count, 1.0f));
  for (std::size_t k = 0; k < 2; ++k) PLAIT_PERSISTENT(Alltoall)
  (buffers[k].data(), count / ranks, MPI_FLOAT, buffers[k + 2].data(), count / ranks, MPI_FLOAT, MPI_COMM_WORLD,
   MPI_INFO_NULL, &requests[k]);
  for (int call = 0; call < 5; ++call)
    if (start_and_wait(requests, rank) != MPI_SUCCESS) return 1;
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  if (rank == failing) deny_single_copies();
  const double begin = MPI_Wtime();
  int error = MPI_SUCCESS;
  for (int call = 0; call < 5 && error == MPI_SUCCESS; ++call) error = start_and_wait(requests, rank);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(raised).c_str());
  int wrong = error == MPI_SUCCESS || seconds > most_seconds;
  // Open MPI frees requests that end with an error.
  if (MPI_Start(&requests[0]) == MPI_SUCCESS) ++wrong;
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL && MPI_Request_free(&request) != MPI_SUCCESS) ++wrong;
  MPI_Errhandler_free(&handler);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int failing = argc > 1 ? std::atoi(argv[1]) : 0;
  const int wrong = argc > 2 ? run_persistent(rank, failing) : run(rank, failing);
  std::printf("rank %d: %d wrong\n", rank, wrong);
  std::fflush(stdout);
  MPI_Finalize();
  return wrong;
}
