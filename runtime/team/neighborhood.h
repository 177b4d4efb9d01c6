// What a team whose communicator has a topology knows of it: who is whose neighbour, and the schedules of calls on them
// (plan/neighbor).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "plan/neighbor/neighbor_plan.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "runtime/team/schedule_cache.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

// This rank's, by their ranks in the team, in the order of the topology; without those that are none (MPI_PROC_NULL).
struct NeighborLists {
  std::vector<int> destinations, sources;
};

// One call, as it lies in this rank's buffers. Cells are ordered as in plan/neighbor.
struct NeighborShape {
  struct Cell {
    std::uint64_t offset, bytes;  // from the lowest of its side
    bool operator==(const Cell&) const = default;
  };
  plan::neighbor::Payload payload = plan::neighbor::Payload::of_edge;
  std::uint64_t bytes =
      0;  // of each block, where all ranks know it: any edge's; 0: of its own edges each rank knows it
  std::vector<Cell> input, output;
  bool operator==(const NeighborShape&) const = default;
};

// Not thread-safe.
class Neighborhood {
 public:
  struct Surroundings {
    int rank = 0;
    std::vector<int> node_of;  // by rank
    Routes routes;
  };
  Neighborhood(plan::neighbor::Graph graph, Surroundings surroundings)
      : graph_(std::move(graph)),
        surroundings_(std::move(surroundings)),
        has_parallel_edges_(plan::neighbor::has_parallel_edges(graph_)) {}

  // Whether some rank has several edges to one other, or to itself: the same on all ranks.
  bool has_parallel_edges() const { return has_parallel_edges_; }

  // A schedule for the call, proven: the same plan on all ranks. Kept for calls of the same shape. Without one: why.
  std::shared_ptr<const PreparedCall> find(const NeighborShape& shape);

 private:
  struct Plan {
    Status status;  // of planning
    std::optional<LoweredPlan> lowered;
  };
  struct Entry {
    NeighborShape shape;
    std::shared_ptr<const PreparedCall> prepared;
  };
  static constexpr std::size_t most_kept = 16;

  const Plan& plan(plan::neighbor::Payload payload, plan::neighbor::Way way);
  std::shared_ptr<const PreparedCall> prepare(const NeighborShape& shape);

  plan::neighbor::Graph graph_;
  Surroundings surroundings_;
  bool has_parallel_edges_;
  std::array<std::unique_ptr<Plan>, 4> plans_;  // by payload and way
  std::vector<Entry> entries_;                  // the latest last
};

// Whether plans are made over it: the lists fit together, and planning it for all ranks takes no more than some 50 MB.
bool can_plan(const plan::neighbor::Graph& graph);

// Collective: the graph of all ranks. Ok on all ranks or on none.
Result<plan::neighbor::Graph> gather_graph(Oob& oob, const NeighborLists& mine);

}  // namespace plait::runtime
