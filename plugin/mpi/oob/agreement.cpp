#include "plugin/mpi/oob/agreement.h"

#include <mpi.h>
#include <sched.h>

#include <array>

#include "plait/plait.h"
#include "plan/model/fingerprint.h"
#include "plugin/mpi/host/host.h"

namespace plait::plugin {
namespace {

std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  if (PMPI_Get_library_version(version.data(), &length) != MPI_SUCCESS) return "unknown";
  return mpi_library_name(version.data());
}

bool wait_for(MPI_Request request, const std::function<void()>& waiting) {
  for (int done = 0; done == 0; sched_yield()) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done == 0) waiting();
  }
  return true;
}

}  // namespace

int MpiWorld::rank() const {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int MpiWorld::ranks() const {
  int ranks = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

bool MpiWorld::gather_all(const void* mine, std::size_t bytes, void* all) {
  const int count = static_cast<int>(bytes);
  return host().allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS;
}

bool MpiWorld::all_say_yes(bool mine, const std::function<void()>& waiting) {
  const int well = mine ? 1 : 0;
  int all = 0;
  if (!waiting) return host().allreduce(&well, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS && all != 0;
  MPI_Request request = MPI_REQUEST_NULL;
  return host().iallreduce(&well, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
         wait_for(request, waiting) && all != 0;
}

BindingFacts binding_facts() {
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  return {.version = plait_version(),
          .mpi_library = library_name(),
          .concurrent = provided == MPI_THREAD_MULTIPLE,
          .main_thread_only = provided == MPI_THREAD_SINGLE || provided == MPI_THREAD_FUNNELED};
}

}  // namespace plait::plugin
