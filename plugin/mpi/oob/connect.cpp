#include "plugin/mpi/oob/connect.h"

#include <mpi.h>

#include <array>
#include <exception>
#include <optional>
#include <utility>

#include "core/attempt.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/oob/mpi_oob.h"

namespace plait::plugin {
namespace {

TeamRequest request_for(const Connecting& connecting, TeamExtent extent, Neighbors& found) {
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  PMPI_Comm_get_name(connecting.comm, name.data(), &length);
  std::optional<NeighborLists> neighbors;
  if (has_topology(connecting.comm)) {
    found = read_neighbors(connecting.comm);
    neighbors = found.lists;
  }
  return {.extent = extent,
          .channels = connecting.channels,
          .grid = connecting.grid,
          .name = length > 0 ? name.data() : "",
          .move_operations_on = [] { own_progress().progress(); },
          .neighbors = std::move(neighbors),
          .location = {}};
}

// For a rank that lacks the memory to say what it wants.
Status leave(const Connecting& connecting, Team* before, const std::exception& exception) noexcept {
  const Status cause = status_of(exception);
  if (before == nullptr) {
    decline_set_up(connecting.comm);
    return cause;
  }
  before->give_up(cause);
  return {Code::peer_failed, "out of memory"};
}

}  // namespace

Result<std::unique_ptr<Team>> connect_team(const Connecting& connecting, TeamExtent extent,
                                           std::unique_ptr<Team> before) noexcept {
  std::unique_ptr<MpiOob> oob;
  TeamRequest request;
  Neighbors neighbors;
  try {
    request = request_for(connecting, extent, neighbors);
    if (before == nullptr) oob = std::make_unique<MpiOob>(MPI_COMM_NULL);
  } catch (const std::exception& exception) {
    return leave(connecting, before.get(), exception);
  }
  if (oob != nullptr)
    if (Status made = oob->make_own(connecting.comm); !made.ok()) return made;
  Result<std::unique_ptr<Team>> made = set_up(std::move(request), std::move(oob), std::move(before));
  if (!made.ok() || (*made)->neighborhood == nullptr) return made;
  if ((*made)->neighborhood->has_parallel_edges())
    if (Status status = pair_edges_as_host(connecting.comm, neighbors, *(*made)->oob); !status.ok()) return status;
  connecting.neighbors = std::move(neighbors);  // a set-up without them leaves what an earlier one has found
  return made;
}

void decline_set_up(MPI_Comm comm) noexcept { decline_mpi_oob(comm); }

}  // namespace plait::plugin
