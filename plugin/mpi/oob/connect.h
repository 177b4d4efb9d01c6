// Sets up the team of one of the program's communicators, over the host's messages.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "plugin/layer.h"
#include "plugin/mpi/oob/neighbors.h"
#include "runtime/team/set_up.h"
#include "runtime/team/team.h"

namespace plait::plugin {

// One of the program's.
struct Connecting {
  MPI_Comm comm;
  const std::vector<std::string>& channels;  // that may be used; empty: those of PLAIT_CHANNELS
  const char* grid;                          // interned
  Neighbors& neighbors;                      // taken from its topology, if it has one
};

// Communicator::connect().
Result<std::unique_ptr<Team>> connect_team(const Connecting& connecting, TeamExtent extent,
                                           std::unique_ptr<Team> before) noexcept;

// Communicator::decline_set_up().
void decline_set_up(MPI_Comm comm) noexcept;

}  // namespace plait::plugin
