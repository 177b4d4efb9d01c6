// A rank's neighbours in a topology: whose data is in which place of the topology's lists.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "plan/model/collective.h"
#include "runtime/layer.h"
#include "runtime/team/neighborhood.h"

namespace plait::runtime {

// Which of a rank's edges from one source meets which of that source's edges to it, where there are several, is settled
// for some topologies only, and hosts differ, even between their own functions. So the host is asked, once a
// communicator, for each of these. Not for alltoallw, whose messages MPICH 4.0 loses then: it is taken to be as
// alltoallv.
struct Pairing {
  static constexpr std::size_t kinds = 2, forms = 2;  // alltoall, or lengths by edge; blocking or not
  static std::size_t index(Collective collective, bool posted) {
    return (collective == Collective::neighbor_alltoall ? 0 : forms) + (posted ? 1 : 0);
  }
};

struct Neighbors {
  // Of the topology's lists, with places where nobody is.
  int destinations = 0, sources = 0;
  // Cells as in plan/neighbor, by their places in the lists: ordered by the other rank, edges of one pair in their
  // order.
  std::vector<int> send_cells, receive_cells;
  // Where edges of a pair are several: receive_cells as the host pairs them.
  std::array<std::vector<int>, Pairing::kinds * Pairing::forms> paired_cells;
  int most_to_one_rank = 0;  // edges
  NeighborLists lists;       // without places where nobody is

  const std::vector<int>& cells_to_receive(Collective collective, bool posted) const {
    if (collective < Collective::neighbor_alltoall) return receive_cells;  // all edges of a pair carry the same
    const std::vector<int>& paired = paired_cells[Pairing::index(collective, posted)];
    return paired.empty() ? receive_cells : paired;
  }
};

// Of the lists as the topology has them; a negative rank: nobody.
Neighbors neighbors_of(const NeighborLists& lists);

// One question to the host: every edge carries its place in its source's order of edges to that rank.
struct EdgeQuestion {
  std::vector<int> send, receive;    // by place
  std::vector<int> counts, offsets;  // one element at each place
  std::vector<int> sources;          // of the answers that count, in the order of cells
};
EdgeQuestion question_of(const Neighbors& neighbors);
// `cells` are receive_cells: from now on edges from one source are in the order of what was received.
void order_by_answer(std::vector<int>& cells, const EdgeQuestion& answered);

}  // namespace plait::runtime
