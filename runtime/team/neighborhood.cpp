#include "runtime/team/neighborhood.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/attempt.h"
#include "core/intern.h"
#include "core/log.h"
#include "plan/lower/proof.h"

namespace plait::runtime {
namespace {

using plan::neighbor::Graph;
using plan::neighbor::Payload;
using plan::neighbor::Way;

// Up to so many bytes an edge what two nodes have for each other travels together: longer data of edges is no faster
// for it, as the network is what it waits for; data of sources then crosses the network once for all ranks of a node.
// By measurement (docs/neighbors.md).
constexpr std::uint64_t most_bytes_of_edge = 16384, most_bytes_of_source = 65536;

Way way_of(const NeighborShape& shape) {
  const std::uint64_t most = shape.payload == Payload::of_edge ? most_bytes_of_edge : most_bytes_of_source;
  return shape.bytes > 0 && shape.bytes <= most ? Way::by_nodes : Way::direct;
}

// One side's cells, each a grid of one run.
void place(const std::vector<NeighborShape::Cell>& cells, std::vector<RunGrid>& grids,
           std::vector<BlockPlaces::Cell>& places) {
  for (const NeighborShape::Cell& cell : cells) {
    places.push_back({static_cast<std::uint32_t>(grids.size()), 0});
    grids.push_back({.origin = cell.offset, .run = std::max<std::uint64_t>(cell.bytes, 1), .levels = 0, .level = {}});
  }
}

BlockPlaces places_of(const NeighborShape& shape, const Semantics& semantics, int rank) {
  BlockPlaces places;
  places.bytes.assign(semantics.blocks(), shape.bytes);
  for (std::uint32_t cell = 0; cell < shape.input.size(); ++cell)
    places.bytes[semantics.input_block(rank, cell)] = shape.input[cell].bytes;
  for (std::uint32_t cell = 0; cell < shape.output.size(); ++cell)
    places.bytes[semantics.output_block(rank, cell)] = shape.output[cell].bytes;
  place(shape.input, places.grids, places.input);
  place(shape.output, places.grids, places.output);
  return places;
}

std::uint64_t sum_of(const std::vector<NeighborShape::Cell>& cells) {
  std::uint64_t bytes = 0;
  for (const NeighborShape::Cell& cell : cells) bytes += cell.bytes;
  return bytes;
}

std::vector<std::int32_t> flat(const NeighborLists& lists, std::size_t length) {
  std::vector<std::int32_t> all(lists.destinations.begin(), lists.destinations.end());
  all.insert(all.end(), lists.sources.begin(), lists.sources.end());
  all.resize(length);
  return all;
}

}  // namespace

Result<Graph> gather_graph(Oob& oob, const NeighborLists& mine) {
  struct Lengths {
    std::int32_t destinations, sources;
  };
  const auto ranks = static_cast<std::size_t>(oob.ranks());
  std::vector<Lengths> lengths;
  const Status room = attempt([&]() -> Status {
    lengths.resize(ranks);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const Lengths own{static_cast<std::int32_t>(mine.destinations.size()),
                    static_cast<std::int32_t>(mine.sources.size())};
  constexpr std::string_view what = "exchange their neighbours";
  if (Status status = oob.gather_all(&own, sizeof own, lengths.data(), what); !status.ok()) return status;
  std::size_t longest = 1;
  for (const Lengths& each : lengths)
    longest = std::max(longest, static_cast<std::size_t>(each.destinations) + static_cast<std::size_t>(each.sources));
  std::vector<std::int32_t> lists, all;
  const Status more_room = attempt([&]() -> Status {
    lists = flat(mine, longest);
    all.resize(longest * ranks);
    return {};
  });
  if (Status status = oob.go_on_together(more_room); !status.ok()) return status;
  if (Status status = oob.gather_all(lists.data(), longest * sizeof(std::int32_t), all.data(), what); !status.ok())
    return status;
  Graph graph;
  const Status read = attempt([&]() -> Status {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * longest);
      const auto middle = first + lengths[rank].destinations;
      graph.destinations.emplace_back(first, middle);
      graph.sources.emplace_back(middle, middle + lengths[rank].sources);
    }
    return {};
  });
  if (Status status = oob.go_on_together(read); !status.ok()) return status;
  return graph;
}

bool can_plan(const Graph& graph) {
  constexpr std::size_t most = std::size_t{4} << 20;  // places of blocks: of each edge on each rank, 12 bytes each
  std::size_t edges = 0;
  for (const std::vector<int>& list : graph.destinations) edges += list.size();
  return edges * graph.destinations.size() <= most && plan::neighbor::check(graph).ok();
}

const Neighborhood::Plan& Neighborhood::plan(Payload payload, Way way) {
  std::unique_ptr<Plan>& plan = plans_[static_cast<std::size_t>(payload) * 2 + static_cast<std::size_t>(way)];
  if (plan != nullptr) return *plan;
  auto made = std::make_unique<Plan>();
  Result<LoweredPlan> lowered =
      plan::neighbor::lower(graph_, payload, way, surroundings_.node_of, surroundings_.routes);
  made->status = lowered.ok() ? prove(lowered->semantics, lowered->schedules, true) : lowered.status();
  if (made->status.ok())
    made->lowered = std::move(*lowered);
  else
    warn("neighbourhood collectives are the host's: " + made->status.message());
  plan = std::move(made);
  return *plan;
}

std::shared_ptr<const PreparedCall> Neighborhood::prepare(const NeighborShape& shape) {
  const Way way = way_of(shape);
  const Plan& planned = plan(shape.payload, way);
  auto prepared = std::make_shared<PreparedCall>();
  prepared->reason = plan::reasons::no_plan;
  if (!planned.status.ok()) return prepared;
  const Semantics& semantics = planned.lowered->semantics;
  const int rank = surroundings_.rank;
  const BlockPlaces places = places_of(shape, semantics, rank);
  bind(planned.lowered->schedules[static_cast<std::size_t>(rank)], semantics, rank,
       {.element_bytes = 1, .places = &places}, prepared->schedule);
  // Not from the lowest to the highest address: what lies between the pieces is not touched.
  prepared->schedule.input_bytes = sum_of(shape.input);
  prepared->schedule.output_bytes = sum_of(shape.output);
  prepared->accelerated = true;
  prepared->plan = intern("neighbours " + std::string(plan::neighbor::name(way)));
  prepared->channels = intern(names(prepared->schedule.channels_used));
  return prepared;
}

std::shared_ptr<const PreparedCall> Neighborhood::find(const NeighborShape& shape) {
  for (std::size_t i = entries_.size(); i-- > 0;)
    if (entries_[i].shape == shape) return entries_[i].prepared;
  std::shared_ptr<const PreparedCall> prepared = prepare(shape);
  if (entries_.size() == most_kept) entries_.erase(entries_.begin());
  entries_.push_back({shape, prepared});
  return prepared;
}

}  // namespace plait::runtime
