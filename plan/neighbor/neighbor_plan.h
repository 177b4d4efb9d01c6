// Neighbourhood collectives: each rank sends to its destinations and receives from its sources, as a topology says.
//
// Two ways (neighbor_allgather and neighbor_alltoall alike):
//   direct      one message from each rank to each other rank that it is a source of
//   by_nodes    what the ranks of one node have for those of another travels as one message: it is brought together by
//   a
//               rank of the one node and dealt out by a rank of the other. The pairs of nodes are dealt out over a
//               node's ranks. Fewer messages over the network, each byte up to twice more through shared memory.
// What stays within a node goes straight from rank to rank.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/builder.h"
#include "plan/model/routes.h"
#include "plan/model/schedule.h"

namespace plait::plan::neighbor {

// By rank: whom it sends to and receives from, by their ranks, in the order of its edges. A rank may stand several
// times in a list, and in its own.
struct Graph {
  std::vector<std::vector<int>> destinations, sources;
  int ranks() const { return static_cast<int>(destinations.size()); }
};

// Ok where each edge stands in both lists: as often among its source's destinations as among its destination's sources.
Status check(const Graph& graph);

// Whether some rank has several edges to one other, or to itself.
bool has_parallel_edges(const Graph& graph);

// What an edge carries: data of its own (alltoall), or its source's, which is the same for all of its edges
// (allgather).
enum class Payload : std::uint8_t { of_edge, of_source };
enum class Way : std::uint8_t { direct, by_nodes };
std::string_view name(Way way);

// All ranks' schedules; prove() them before their first run. Of a Payload::of_edge a block is an edge: a rank's input
// cells are its edges ordered by destination, its output cells those ordered by source, edges of one pair in their
// order. Of a Payload::of_source a rank has as many blocks, all of them its data, as it has edges to one rank at most.
// Precondition: check().
Result<LoweredPlan> lower(const Graph& graph, Payload payload, Way way, std::span<const int> node_of,
                          const Routes& routes);

}  // namespace plait::plan::neighbor
