// A communicator's topology, as neighbourhood collectives need it: whose data is in which of the program's places.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plugin/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/neighborhood.h"

namespace plait::plugin {

// Which of a rank's edges from one source meets which of that source's edges to it, where there are several, MPI says
// for some topologies only, and the hosts differ, even between their own functions. So the host is asked, once a
// communicator, for each of these. Not for alltoallw, whose messages MPICH 4.0 loses then: it is taken to be as
// alltoallv.
struct Pairing {
  static constexpr std::size_t kinds = 2, forms = 2;  // alltoall, or lengths by edge; blocking or not
  static std::size_t index(Collective collective, bool posted) {
    return (collective == Collective::neighbor_alltoall ? 0 : forms) + (posted ? 1 : 0);
  }
};

struct Neighbors {
  // Of MPI's lists, with MPI_PROC_NULL.
  int destinations = 0, sources = 0;
  // Cells as in plan/neighbor, by their places in MPI's lists: ordered by the other rank, edges of one pair in their
  // order.
  std::vector<int> send_cells, receive_cells;
  // Where edges of a pair are several: receive_cells as the host pairs them.
  std::array<std::vector<int>, Pairing::kinds * Pairing::forms> paired_cells;
  int most_to_one_rank = 0;  // edges
  NeighborLists lists;       // without MPI_PROC_NULL

  const std::vector<int>& cells_to_receive(Collective collective, bool posted) const {
    if (collective < Collective::neighbor_alltoall) return receive_cells;  // all edges of a pair carry the same
    const std::vector<int>& paired = paired_cells[Pairing::index(collective, posted)];
    return paired.empty() ? receive_cells : paired;
  }
};

// Whether it has a topology: the same on all ranks.
bool has_topology(MPI_Comm comm);
// This rank's. May throw std::bad_alloc.
Neighbors read_neighbors(MPI_Comm comm);

// Collective over a communicator some pair of whose ranks has several edges. `oob`: of its ranks. Ok on all ranks or on
// none.
Status pair_edges_as_host(MPI_Comm comm, Neighbors& neighbors, Oob& oob) noexcept;

}  // namespace plait::plugin
