// A communicator's topology as MPI tells it (runtime/team/neighbor_cells.h).
#pragma once

#include <mpi.h>

#include "core/status.h"
#include "plugin/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/neighbor_cells.h"

namespace plait::plugin {

// Whether it has a topology: the same on all ranks.
bool has_topology(MPI_Comm comm);
// This rank's. May throw std::bad_alloc.
Neighbors read_neighbors(MPI_Comm comm);

// pair_edges() by the host's own neighbourhood collectives.
Status pair_edges_as_host(MPI_Comm comm, Neighbors& neighbors, Oob& oob) noexcept;

}  // namespace plait::plugin
