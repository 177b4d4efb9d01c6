// A job whose error handler returns errors, and of which one rank's single copies are forbidden in the middle, or its
// packing (late_denial.cpp). All ranks must get an error soon, and again from the next call.
//
//   failing_rank RANK [packing|set-up|set-up-pairs|first|persistent|first-persistent]
//
// set-up: the others' next call needs a longer set-up than the one in which the rank fails, which not all of them
// notice in that call. set-up-pairs: an exchange whose lengths differ by pair.
// persistent: of two persistent collectives, which every second rank starts in the other order.
// first: in the first long call, while connections are made.
#include <mpi.h>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
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
    // One without a gap inside would not be packed by the host.
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    MPI_Type_vector(2, 1, 2, MPI_FLOAT, &pair);
    MPI_Type_create_resized(pair, 0, 4 * sizeof(float), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&pair);
    floats = 2;
  }
  std::vector<float> given, taken;
  MPI_Datatype type;
  int floats = 1;  // of an element
};

int exchange(Data& data) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return MPI_Alltoall(data.given.data(), count / ranks / data.floats, data.type, data.taken.data(), count / ranks,
                      MPI_FLOAT, MPI_COMM_WORLD);
}

// A gather of 128 B a rank, in which only the root needs the failing one.
int gather_short(Data& data) {
  return MPI_Gather(data.given.data(), 32 / data.floats, data.type, data.taken.data(), 32, MPI_FLOAT, 0,
                    MPI_COMM_WORLD);
}

// The same lengths for all pairs, which only the pairs know.
int exchange_by_pairs(Data& data) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int taken = count / ranks, given = taken / data.floats;
  std::vector<int> counts(static_cast<std::size_t>(ranks), taken), places(counts.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i) * taken;
  std::vector<int> given_counts(counts.size(), given), given_places(counts.size());
  for (std::size_t i = 0; i < places.size(); ++i) given_places[i] = static_cast<int>(i) * given;
  return MPI_Alltoallv(data.given.data(), given_counts.data(), given_places.data(), data.type, data.taken.data(),
                       counts.data(), places.data(), MPI_FLOAT, MPI_COMM_WORLD);
}

// Nobody is to hear of the failure in the call before it, which others may leave later.
void let_others_leave() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

int run_before_set_up(int rank, int failing, bool pairs) {
  Data data(true);
  for (int call = 0; call < 5; ++call)
    if (gather_short(data) != MPI_SUCCESS) return 1;
  let_others_leave();
  if (rank == failing) deny_packing();
  if (rank != failing) let_others_leave();
  const double begin = MPI_Wtime();
  int error = gather_short(data);
  if (error == MPI_SUCCESS) error = pairs ? exchange_by_pairs(data) : exchange(data);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(error).c_str());
  return error == MPI_SUCCESS || seconds > most_seconds;
}

// The number of what was not as it must be.
int run(int rank, int failing, bool packing, int calls_before) {
  Data data(packing);
  for (int call = 0; call < calls_before; ++call)
    if (exchange(data) != MPI_SUCCESS) return 1;
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  if (rank == failing) let_others_leave();
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

int run_persistent(int rank, int failing, int calls_before) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm apart = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &apart);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  std::array<MPI_Request, 2> requests{};
  std::vector<std::vector<float>> buffers(4, std::vector<float>(count, 1.0f));
  for (std::size_t k = 0; k < 2; ++k) PLAIT_PERSISTENT(Alltoall)
  (buffers[k].data(), count / ranks, MPI_FLOAT, buffers[k + 2].data(), count / ranks, MPI_FLOAT, MPI_COMM_WORLD,
   MPI_INFO_NULL, &requests[k]);
  for (int call = 0; call < calls_before; ++call)
    if (start_and_wait(requests, rank) != MPI_SUCCESS) return 1;
  if (MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  if (rank == failing) let_others_leave();
  if (rank == failing) deny_single_copies();
  const double begin = MPI_Wtime();
  int error = MPI_SUCCESS;
  for (int call = 0; call < 5 && error == MPI_SUCCESS; ++call) error = start_and_wait(requests, rank);
  const double seconds = MPI_Wtime() - begin;
  std::printf("rank %d: after %.3f s: %s\n", rank, seconds, error_text(raised).c_str());
  int wrong = error == MPI_SUCCESS || seconds > most_seconds;
  // UCX 1.13 ends a process whose peer leaves the job while it connects to it.
  if (seconds < most_seconds) MPI_Barrier(apart);
  MPI_Comm_free(&apart);
  // Open MPI frees requests that end with an error.
  if (MPI_Start(&requests[0]) == MPI_SUCCESS) ++wrong;
  for (MPI_Request& request : requests)
    if (request != MPI_REQUEST_NULL && MPI_Request_free(&request) != MPI_SUCCESS) ++wrong;
  MPI_Errhandler_free(&handler);
  return wrong;
}

int run_as(const std::string& what, int rank, int failing) {
  if (what == "set-up" || what == "set-up-pairs") return run_before_set_up(rank, failing, what == "set-up-pairs");
  const int calls_before = what.starts_with("first") ? 0 : 5;
  if (what.ends_with("persistent")) return run_persistent(rank, failing, calls_before);
  return run(rank, failing, what == "packing", calls_before);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int failing = argc > 1 ? std::atoi(argv[1]) : 0;
  const int wrong = run_as(argc > 2 ? argv[2] : "", rank, failing);
  std::printf("rank %d: %d wrong\n", rank, wrong);
  std::fflush(stdout);
  MPI_Finalize();
  return wrong;
}
