#include "plugin/mpi/communicator/communicator.h"

#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "core/intern.h"
#include "core/log.h"
#include "plan/choose/planner.h"
#include "plan/synthesis/process_grid.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/oob/connect.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/team/team.h"

namespace plait::plugin {

namespace {

// A communicator's ranks in MPI_COMM_WORLD.
class WorldRanks {
 public:
  explicit WorldRanks(MPI_Comm comm) {
    PMPI_Comm_group(comm, &group_);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_);
  }
  ~WorldRanks() {
    PMPI_Group_free(&group_);
    PMPI_Group_free(&world_);
  }
  WorldRanks(const WorldRanks&) = delete;
  WorldRanks& operator=(const WorldRanks&) = delete;
  // Negative: not in it.
  int of(int rank) const {
    int translated = MPI_UNDEFINED;
    return PMPI_Group_translate_ranks(group_, 1, &rank, world_, &translated) == MPI_SUCCESS ? translated
                                                                                            : MPI_UNDEFINED;
  }

 private:
  MPI_Group group_ = MPI_GROUP_NULL, world_ = MPI_GROUP_NULL;
};

std::vector<int> world_ranks(MPI_Comm comm, int ranks) {
  const WorldRanks world(comm);
  std::vector<int> translated;
  for (int rank = 0; rank < ranks; ++rank) translated.push_back(world.of(rank));
  return translated;
}

// Who is of another MPI_COMM_WORLD (spawned, connected) agreed on nothing with this process, and may lack Plait. All
// ranks see some such rank, or none does. Allocates nothing: it must not fail on some ranks alone.
bool of_one_job(MPI_Comm comm, int ranks) {
  int in_world = 0, rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &in_world);
  if (comm == MPI_COMM_WORLD || ranks > in_world) return comm == MPI_COMM_WORLD;
  const WorldRanks world(comm);
  while (rank < ranks && world.of(rank) >= 0) ++rank;
  return rank == ranks;
}

// Once a process: a program may make many.
void say_too_large(int ranks) {
  static constinit std::atomic<bool> said{false};
  if (!job().first_rank || said.exchange(true)) return;
  info("a communicator of " + std::to_string(ranks) + " ranks is left to the host MPI: plans are made for up to " +
       std::to_string(most_team_ranks));
}

// Where memory is short the first call that needs them asks again.
void reserve(Lists& lists, std::size_t ranks) {
  constexpr std::size_t many = 1024;  // whose calls with lists are seldom enough to take the memory when they come
  if (ranks > many) return;
  try {
    lists.counts.reserve(ranks);
    lists.displacements.reserve(ranks);
    lists.sends.reserve(ranks);
    lists.receives.reserve(ranks);
  } catch (const std::exception&) {
  }
}

// For the report only: no reason to fail where memory is short.
const char* grid_text(MPI_Comm comm, int ranks) {
  try {
    const auto axes = grid_axes(world_ranks(comm, ranks));
    return axes.has_value() ? intern(text(*axes)) : "";
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm) : Communicator(own_progress()), handle(comm) {
  int is_inter = 0;
  // Whatever is set up is then for calls that do not block as well: they cannot wait for more.
  posts = job().config.reproducible == Reproducible::order;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_size(comm, &ranks);
  PMPI_Comm_rank(comm, &rank);
  inter = is_inter != 0;
  if (inter) {
    int remote = 0;
    PMPI_Comm_remote_size(comm, &remote);
    ranks += remote;
  }
  const char* reason = reasons::of_communicator(inter, ranks);
  if (reason == plan::reasons::too_large) say_too_large(ranks);
  if (reason == nullptr && !of_one_job(comm, ranks)) reason = reasons::several_jobs;
  if (reason != nullptr) {
    host_reason = reason;
    road = Road::host;
  } else {
    reserve(space, static_cast<std::size_t>(ranks));
  }
  if (!inter && ranks > 1 && reporting()) grid = grid_text(comm, ranks);
}

MpiCommunicator::~MpiCommunicator() = default;

Result<std::unique_ptr<Team>> MpiCommunicator::connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept {
  return connect_team({.comm = handle, .channels = channels, .grid = grid, .neighbors = neighbors}, extent,
                      std::move(before));
}

void MpiCommunicator::decline_set_up() noexcept { plugin::decline_set_up(handle); }

int MpiCommunicator::raise(int code) { return raise_error_of_call(handle, code); }

}  // namespace plait::plugin
