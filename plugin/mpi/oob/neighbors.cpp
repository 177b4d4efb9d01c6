#include "plugin/mpi/oob/neighbors.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "plugin/mpi/host/host.h"

namespace plait::plugin {
namespace {

// Of each dimension the one before, then the one after.
EdgeLists cartesian(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  EdgeLists lists;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &after);
    lists.sources.insert(lists.sources.end(), {before, after});
  }
  lists.destinations = lists.sources;
  return lists;
}

EdgeLists graph(MPI_Comm comm) {
  int rank = 0, count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  EdgeLists lists;
  lists.sources.resize(static_cast<std::size_t>(count));
  PMPI_Graph_neighbors(comm, rank, count, lists.sources.data());
  lists.destinations = lists.sources;
  return lists;
}

EdgeLists distributed_graph(MPI_Comm comm) {
  int sources = 0, destinations = 0, weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
  EdgeLists lists;
  lists.sources.resize(static_cast<std::size_t>(sources));
  lists.destinations.resize(static_cast<std::size_t>(destinations));
  std::vector<int> weights(static_cast<std::size_t>(std::max({sources, destinations, 1})));
  PMPI_Dist_graph_neighbors(comm, sources, lists.sources.data(), weights.data(), destinations,
                            lists.destinations.data(), weights.data());
  return lists;
}

int ask(MPI_Comm comm, PairingQuestion& question, std::size_t kind, bool posted) {
  MPI_Request request = MPI_REQUEST_NULL;
  int *send = question.send.data(), *receive = question.receive.data();
  const int *counts = question.counts.data(), *places = question.places.data();
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
  return pair_edges(oob, neighbors, [comm](PairingQuestion& question, std::size_t kind, bool posted) {
    return ask(comm, question, kind, posted) == MPI_SUCCESS;
  });
}

bool has_topology(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  return PMPI_Topo_test(comm, &kind) == MPI_SUCCESS && kind != MPI_UNDEFINED;
}

Neighbors read_neighbors(MPI_Comm comm) {
  int kind = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &kind);
  EdgeLists lists;
  if (kind == MPI_CART) lists = cartesian(comm);
  if (kind == MPI_GRAPH) lists = graph(comm);
  if (kind == MPI_DIST_GRAPH) lists = distributed_graph(comm);
  return neighbors_from(std::move(lists), MPI_PROC_NULL);
}

}  // namespace plait::plugin
