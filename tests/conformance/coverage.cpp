// Makes a call of every form of every collective of MPI 3.1 and looks whether a plan of Plait's carried it: all that
// the bindings take, and nothing else, as docs/coverage.md says.
//
//   coverage      needs PLAIT_SETUP_CALLS=1 PLAIT_HOST=0, and at least 3 ranks
#include <mpi.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/lists/collective_functions.h"
#include "tests/persistent_form.h"
#include "tests/preload/plan_used.h"

namespace {

enum class CallForm { blocking, nonblocking, persistent };
constexpr std::array forms = {CallForm::blocking, CallForm::nonblocking, CallForm::persistent};

bool taken(std::string_view mpi_name) {
#define PLAIT_TAKEN(Name, name, parameters, arguments) \
  if (mpi_name == #Name) return true;
  PLAIT_COLLECTIVES(PLAIT_TAKEN)
#undef PLAIT_TAKEN
  return false;
}

constexpr int count = 16;
std::vector<int> from, to, counts, places, byte_places;
std::vector<MPI_Datatype> types;
std::vector<MPI_Aint> far_places;

struct Case {
  std::string_view mpi_name;
  void (*block)(MPI_Comm comm);
  void (*post)(MPI_Comm comm, MPI_Request* request);
  void (*init)(MPI_Comm comm, MPI_Request* request);  // nullptr: MPI 3.1 has none, and nothing is said about it
};

#define PLAIT_TWO_FORMS(Name, name, arguments)                                         \
  .mpi_name = #Name, .block = [](MPI_Comm comm) { MPI_##Name(PLAIT_LIST arguments); }, \
  .post = [](MPI_Comm comm, MPI_Request* request) { MPI_I##name(PLAIT_LIST arguments, request); }
#define PLAIT_CASE(Name, name, arguments)                                                     \
  Case {                                                                                      \
    PLAIT_TWO_FORMS(Name, name, arguments), .init = [](MPI_Comm comm, MPI_Request* request) { \
      PLAIT_PERSISTENT(Name)(PLAIT_LIST arguments, MPI_INFO_NULL, request);                   \
    }                                                                                         \
  }
#define PLAIT_NEIGHBOURS(Name, name, arguments) \
  Case { PLAIT_TWO_FORMS(Name, name, arguments), .init = nullptr }

#define PLAIT_FROM from.data(), count, MPI_INT
#define PLAIT_TO to.data(), count, MPI_INT
#define PLAIT_FROM_PARTS from.data(), counts.data(), places.data(), MPI_INT
#define PLAIT_TO_PARTS to.data(), counts.data(), places.data(), MPI_INT
#define PLAIT_REDUCE from.data(), to.data(), count, MPI_INT, MPI_SUM

const std::vector<Case> cases = {
    PLAIT_CASE(Barrier, barrier, (comm)),
    PLAIT_CASE(Bcast, bcast, (PLAIT_TO, 0, comm)),
    PLAIT_CASE(Gather, gather, (PLAIT_FROM, PLAIT_TO, 0, comm)),
    PLAIT_CASE(Gatherv, gatherv, (PLAIT_FROM, PLAIT_TO_PARTS, 0, comm)),
    PLAIT_CASE(Scatter, scatter, (PLAIT_FROM, PLAIT_TO, 0, comm)),
    PLAIT_CASE(Scatterv, scatterv, (PLAIT_FROM_PARTS, PLAIT_TO, 0, comm)),
    PLAIT_CASE(Allgather, allgather, (PLAIT_FROM, PLAIT_TO, comm)),
    PLAIT_CASE(Allgatherv, allgatherv, (PLAIT_FROM, PLAIT_TO_PARTS, comm)),
    PLAIT_CASE(Alltoall, alltoall, (PLAIT_FROM, PLAIT_TO, comm)),
    PLAIT_CASE(Alltoallv, alltoallv, (PLAIT_FROM_PARTS, PLAIT_TO_PARTS, comm)),
    PLAIT_CASE(Alltoallw, alltoallw,
               (from.data(), counts.data(), byte_places.data(), types.data(), to.data(), counts.data(),
                byte_places.data(), types.data(), comm)),
    PLAIT_CASE(Reduce, reduce, (PLAIT_REDUCE, 0, comm)),
    PLAIT_CASE(Allreduce, allreduce, (PLAIT_REDUCE, comm)),
    PLAIT_CASE(Reduce_scatter, reduce_scatter, (from.data(), to.data(), counts.data(), MPI_INT, MPI_SUM, comm)),
    PLAIT_CASE(Reduce_scatter_block, reduce_scatter_block, (PLAIT_REDUCE, comm)),
    PLAIT_CASE(Scan, scan, (PLAIT_REDUCE, comm)),
    PLAIT_CASE(Exscan, exscan, (PLAIT_REDUCE, comm)),
    PLAIT_NEIGHBOURS(Neighbor_allgather, neighbor_allgather, (PLAIT_FROM, PLAIT_TO, comm)),
    PLAIT_NEIGHBOURS(Neighbor_allgatherv, neighbor_allgatherv, (PLAIT_FROM, PLAIT_TO_PARTS, comm)),
    PLAIT_NEIGHBOURS(Neighbor_alltoall, neighbor_alltoall, (PLAIT_FROM, PLAIT_TO, comm)),
    PLAIT_NEIGHBOURS(Neighbor_alltoallv, neighbor_alltoallv, (PLAIT_FROM_PARTS, PLAIT_TO_PARTS, comm)),
    PLAIT_NEIGHBOURS(Neighbor_alltoallw, neighbor_alltoallw,
                     (from.data(), counts.data(), far_places.data(), types.data(), to.data(), counts.data(),
                      far_places.data(), types.data(), comm)),
};

void prepare(int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  from.assign(all * count, 1);
  to.assign(all * count, 0);
  counts.assign(all, count);
  types.assign(all, MPI_INT);
  for (int rank = 0; rank < ranks; ++rank) {
    places.push_back(rank * count);
    byte_places.push_back(rank * count * static_cast<int>(sizeof(int)));
    far_places.push_back(byte_places.back());
  }
}

// What carried the last call is asked for after this: else it would be the one before.
void forget() {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

bool call(const Case& one, CallForm form, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  bool carried = false;
  // Non-blocking calls run once a blocking one has set up the communicator for any length.
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Barrier(comm);
    if (form == CallForm::persistent) one.init(comm, &request);
    forget();
    if (form == CallForm::blocking) one.block(comm);
    if (form == CallForm::nonblocking) one.post(comm, &request);
    if (form == CallForm::persistent) MPI_Start(&request);
    carried = accelerated();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == CallForm::persistent) MPI_Request_free(&request);
  }
  return carried;
}

std::string name_of(const Case& one, CallForm form) {
  constexpr std::array<const char*, 3> words = {"blocking", "non-blocking", "persistent"};
  return std::string(one.mpi_name) + ", " + words[static_cast<std::size_t>(form)];
}

int compare(MPI_Comm comm) {
  int differing = 0;
  for (const Case& one : cases)
    for (const CallForm form : forms) {
      if (form == CallForm::persistent && one.init == nullptr) continue;
      const bool carried = call(one, form, comm);
      if (carried == taken(one.mpi_name)) continue;
      ++differing;
      std::printf("coverage: %s: %s\n", name_of(one, form).c_str(), carried ? "accelerated" : "the host's");
    }
  return differing;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  prepare(ranks);
  MPI_Comm ring = MPI_COMM_NULL;
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  const int differing = compare(ring);
  MPI_Comm_free(&ring);
  if (rank == 0) std::printf("coverage: %d of %zu collectives differ\n", differing, cases.size());
  MPI_Finalize();
  return differing != 0;
}
