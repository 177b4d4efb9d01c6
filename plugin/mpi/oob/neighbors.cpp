#include "plugin/mpi/oob/neighbors.h"

#include <algorithm>
#include <numeric>

#include "core/attempt.h"
#include "plugin/mpi/host/host.h"

namespace plait::plugin {
namespace {

struct Lists {
  std::vector<int> sources, destinations;
};

// Of each dimension the one before, then the one after.
Lists cartesian(MPI_Comm comm) {
  int dimensions = 0;
  PMPI_Cartdim_get(comm, &dimensions);
  Lists lists;
  for (int dimension = 0; dimension < dimensions; ++dimension) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &after);
    lists.sources.insert(lists.sources.end(), {before, after});
  }
  lists.destinations = lists.sources;
  return lists;
}

Lists graph(MPI_Comm comm) {
  int rank = 0, count = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Graph_neighbors_count(comm, rank, &count);
  Lists lists;
  lists.sources.resize(static_cast<std::size_t>(count));
  PMPI_Graph_neighbors(comm, rank, count, lists.sources.data());
  lists.destinations = lists.sources;
  return lists;
}

Lists distributed_graph(MPI_Comm comm) {
  int sources = 0, destinations = 0, weighted = 0;
  PMPI_Dist_graph_neighbors_count(comm, &sources, &destinations, &weighted);
  Lists lists;
  lists.sources.resize(static_cast<std::size_t>(sources));
  lists.destinations.resize(static_cast<std::size_t>(destinations));
  std::vector<int> weights(static_cast<std::size_t>(std::max({sources, destinations, 1})));
  PMPI_Dist_graph_neighbors(comm, sources, lists.sources.data(), weights.data(), destinations,
                            lists.destinations.data(), weights.data());
  return lists;
}

// The places of real neighbours, ordered by them.
std::vector<int> cells_of(const std::vector<int>& list) {
  std::vector<int> places;
  for (std::size_t place = 0; place < list.size(); ++place)
    if (list[place] != MPI_PROC_NULL) places.push_back(static_cast<int>(place));
  std::ranges::stable_sort(places, {}, [&](int place) { return list[static_cast<std::size_t>(place)]; });
  return places;
}

std::vector<int> without_null(std::vector<int> list) {
  std::erase(list, MPI_PROC_NULL);
  return list;
}

int most_of_one(std::vector<int> list) {
  std::ranges::sort(list);
  int most = 0, now = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    now = i > 0 && list[i] == list[i - 1] ? now + 1 : 1;
    most = std::max(most, now);
  }
  return most;
}

// One question to the host: every edge carries its place in its source's order of edges to that rank.
struct Question {
  std::vector<int> send, receive, counts, places;
};

Question question_of(const Neighbors& neighbors) {
  Question question;
  const auto places = static_cast<std::size_t>(std::max({neighbors.destinations, neighbors.sources, 1}));
  question.send.resize(places);
  question.receive.resize(places);
  question.counts.assign(places, 1);
  question.places.resize(places);
  std::iota(question.places.begin(), question.places.end(), 0);
  std::vector<int> ordered = neighbors.lists.destinations;
  std::ranges::sort(ordered);
  int of_pair = 0;
  for (std::size_t cell = 0; cell < neighbors.send_cells.size(); ++cell) {
    of_pair = cell > 0 && ordered[cell] == ordered[cell - 1] ? of_pair + 1 : 0;
    question.send[static_cast<std::size_t>(neighbors.send_cells[cell])] = of_pair;
  }
  return question;
}

// Within the edges from one source, which stand side by side.
void order_by_answer(std::vector<int>& cells, const std::vector<int>& sources, const std::vector<int>& answer) {
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t last = first + 1;
    while (last < cells.size() && sources[last] == sources[first]) ++last;
    std::sort(cells.begin() + static_cast<std::ptrdiff_t>(first), cells.begin() + static_cast<std::ptrdiff_t>(last),
              [&](int a, int b) { return answer[static_cast<std::size_t>(a)] < answer[static_cast<std::size_t>(b)]; });
    first = last;
  }
}

int ask(MPI_Comm comm, Question& question, std::size_t kind, bool posted) {
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
  Question question;
  std::vector<int> sources;
  const Status room = attempt([&]() -> Status {
    question = question_of(neighbors);
    sources = neighbors.lists.sources;
    std::ranges::sort(sources);
    for (std::vector<int>& cells : neighbors.paired_cells) cells = neighbors.receive_cells;
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  bool well = true;  // all questions are asked by all ranks
  for (std::size_t kind = 0; kind < Pairing::kinds; ++kind)
    for (const bool posted : {false, true}) {
      well = ask(comm, question, kind, posted) == MPI_SUCCESS && well;
      order_by_answer(neighbors.paired_cells[kind * Pairing::forms + (posted ? 1 : 0)], sources, question.receive);
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
  Lists lists;
  if (kind == MPI_CART) lists = cartesian(comm);
  if (kind == MPI_GRAPH) lists = graph(comm);
  if (kind == MPI_DIST_GRAPH) lists = distributed_graph(comm);
  Neighbors neighbors;
  neighbors.destinations = static_cast<int>(lists.destinations.size());
  neighbors.sources = static_cast<int>(lists.sources.size());
  neighbors.send_cells = cells_of(lists.destinations);
  neighbors.receive_cells = cells_of(lists.sources);
  neighbors.lists = {.destinations = without_null(lists.destinations), .sources = without_null(lists.sources)};
  neighbors.most_to_one_rank = most_of_one(neighbors.lists.destinations);
  return neighbors;
}

}  // namespace plait::plugin
