// A communicator's topology, as neighbourhood collectives need it: whose data is in which of the program's places.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/neighborhood.h"

namespace plait::runtime {

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
  // Of the program's lists, with places of no rank.
  int destinations = 0, sources = 0;
  // Cells as in plan/neighbor, by their places in those lists: ordered by the other rank, edges of one pair in their
  // order.
  std::vector<int> send_cells, receive_cells;
  // Where edges of a pair are several: receive_cells as the host pairs them.
  std::array<std::vector<int>, Pairing::kinds * Pairing::forms> paired_cells;
  int most_to_one_rank = 0;  // edges
  NeighborLists lists;       // without places of no rank

  const std::vector<int>& cells_to_receive(Collective collective, bool posted) const {
    if (collective < Collective::neighbor_alltoall) return receive_cells;  // all edges of a pair carry the same
    const std::vector<int>& paired = paired_cells[Pairing::index(collective, posted)];
    return paired.empty() ? receive_cells : paired;
  }
};

// The other ranks of one rank's edges, in the program's order.
struct EdgeLists {
  std::vector<int> sources, destinations;
};

// `none`: what stands in the lists for no rank. Throws where memory is short.
Neighbors neighbors_from(EdgeLists lists, int none);

// One question to the host: every edge carries its place in its source's order of edges to that rank.
struct PairingQuestion {
  std::vector<int> send, receive;   // by place
  std::vector<int> counts, places;  // of a collective with lengths by edge: 1 each; where they stand
};

// Collective over the neighbourhood by the host's own function of that kind; false where it failed.
using AskHost = std::function<bool(PairingQuestion& question, std::size_t kind, bool posted)>;

// Collective over a communicator some pair of whose ranks has several edges. `oob`: of its ranks. Ok on all ranks or on
// none.
Status pair_edges(Oob& oob, Neighbors& neighbors, const AskHost& ask) noexcept;

}  // namespace plait::runtime
