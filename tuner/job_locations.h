// Where the ranks of a job run.
#pragma once

#include <vector>

#include "tl/mpi/session.h"
#include "topo/location.h"

namespace plait {

// Every rank's location, by rank. Collective; blocks for some milliseconds.
std::vector<Location> gather_locations(MpiSession& session);

}  // namespace plait
