// A communicator's topology, as the host tells it.
#pragma once

#include <mpi.h>

#include "core/status.h"
#include "plugin/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/neighbors.h"

namespace plait::plugin {

// Whether it has a topology: the same on all ranks.
bool has_topology(MPI_Comm comm);
// This rank's. May throw std::bad_alloc.
Neighbors read_neighbors(MPI_Comm comm);

// Collective over a communicator some pair of whose ranks has several edges. `oob`: of its ranks. Ok on all ranks or on
// none.
Status pair_edges_as_host(MPI_Comm comm, Neighbors& neighbors, Oob& oob) noexcept;

}  // namespace plait::plugin
