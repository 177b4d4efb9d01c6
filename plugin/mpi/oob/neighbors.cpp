#include "plugin/mpi/oob/neighbors.h"

#include <algorithm>
#include <vector>

#include "core/attempt.h"
#include "plugin/mpi/host/host.h"

namespace plait::plugin {
namespace {

static_assert(MPI_PROC_NULL < 0);  // as neighbors_of() has it

// Of each dimension the one before, then the one after.
NeighborLists cartesian(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  NeighborLists lists;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &after);
    lists.sources.insert(lists.sources.end(), {before, after});
  }
  lists.destinations = lists.sources;
  return lists;
}

NeighborLists graph(MPI_Comm comm) {
  int rank = 0, count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  NeighborLists lists;
  lists.sources.resize(static_cast<std::size_t>(count));
  PMPI_Graph_neighbors(comm, rank, count, lists.sources.data());
  lists.destinations = lists.sources;
  return lists;
}

NeighborLists distributed_graph(MPI_Comm comm) {
  int sources = 0, destinations = 0, weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
  NeighborLists lists;
  lists.sources.resize(static_cast<std::size_t>(sources));
  lists.destinations.resize(static_cast<std::size_t>(destinations));
  std::vector<int> weights(static_cast<std::size_t>(std::max({sources, destinations, 1})));
  PMPI_Dist_graph_neighbors(comm, sources, lists.sources.data(), weights.data(), destinations,
                            lists.destinations.data(), weights.data());
  return lists;
}

int ask(MPI_Comm comm, EdgeQuestion& question, std::size_t kind, bool posted) {
  MPI_Request request = MPI_REQUEST_NULL;
  int *send = question.send.data(), *receive = question.receive.data();
  const int *counts = question.counts.data(), *places = question.offsets.data();
  int error = MPI_SUCCESS;
  if (kind == 0)
    error = posted ? host().ineighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm, &request)
                   : host().neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, comm);
  else
    error = posted ? host().ineighbor_alltoallv(send, counts, places, MPI_INT, receive, counts, places, MPI_INT, comm,
                                                &request)
                   : host().neighbor_alltoallv(send, counts, places, MPI_INT, receive, counts, places, MPI_INT, comm);
  if (error == MPI_SUCCESS && posted) error = host().wait(&request, MPI_STATUS_IGNORE);
  return error;
}

}  // namespace

Status pair_edges_as_host(MPI_Comm comm, Neighbors& neighbors, Oob& oob) noexcept {
  EdgeQuestion question;
  const Status room = attempt([&]() -> Status {
    question = question_of(neighbors);
    for (std::vector<int>& cells : neighbors.paired_cells) cells = neighbors.receive_cells;
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  bool well = true;  // all questions are asked by all ranks
  for (std::size_t kind = 0; kind < Pairing::kinds; ++kind)
    for (const bool posted : {false, true}) {
      well = ask(comm, question, kind, posted) == MPI_SUCCESS && well;
      order_by_answer(neighbors.paired_cells[kind * Pairing::forms + (posted ? 1 : 0)], question);
    }
  const Status mine = attempt([&]() -> Status {
    return well ? Status() : Status(Code::unavailable, "the host's neighbourhood collectives fail");
  });
  return oob.go_on_together(mine);
}

bool has_topology(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  return PMPI_Topo_test(comm, &kind) == MPI_SUCCESS && kind != MPI_UNDEFINED;
}

Neighbors read_neighbors(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  NeighborLists lists;
  if (kind == MPI_CART) lists = cartesian(comm);
  if (kind == MPI_GRAPH) lists = graph(comm);
  if (kind == MPI_DIST_GRAPH) lists = distributed_graph(comm);
  return neighbors_of(lists);
}

}  // namespace plait::plugin
