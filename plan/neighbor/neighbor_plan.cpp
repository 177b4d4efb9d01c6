#include "plan/neighbor/neighbor_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace plait::plan::neighbor {
namespace {

using Blocks = std::vector<BlockId>;

struct Edge {
  int from, to;
  BlockId block;
};

// The edges, by source and then by destination, those of one pair in their order; and who has which blocks.
struct Layout {
  std::vector<Edge> edges;
  std::shared_ptr<BlockOwners> owners;
};

Layout lay_out(const Graph& graph, Payload payload) {
  Layout layout;
  layout.owners = std::make_shared<BlockOwners>();
  BlockOwners& owners = *layout.owners;
  const auto ranks = static_cast<std::size_t>(graph.ranks());
  owners.inputs.resize(ranks);
  owners.outputs.resize(ranks);
  const auto new_block = [&](int from) {
    owners.inputs[static_cast<std::size_t>(from)].push_back(owners.blocks);
    owners.origin.push_back(from);
    return owners.blocks++;
  };
  for (int from = 0; from < graph.ranks(); ++from) {
    std::vector<int> destinations = graph.destinations[static_cast<std::size_t>(from)];
    std::ranges::sort(destinations);
    const Blocks& own = owners.inputs[static_cast<std::size_t>(from)];
    std::size_t of_pair = 0;
    for (std::size_t i = 0; i < destinations.size(); ++i) {
      of_pair = i > 0 && destinations[i] == destinations[i - 1] ? of_pair + 1 : 0;
      const bool has_block = payload == Payload::of_source && of_pair < own.size();
      const BlockId block = has_block ? own[of_pair] : new_block(from);
      layout.edges.push_back({from, destinations[i], block});
      owners.outputs[static_cast<std::size_t>(destinations[i])].push_back(block);
    }
  }
  return layout;
}

// Which rank of a node is the aggregator of what its node and another one have for each other: one that has an edge to
// or from the other node itself, and so knows how long edges are. The pairs of nodes are dealt out over them.
class Nodes {
 public:
  Nodes(std::span<const int> node_of, const std::vector<Edge>& edges) : node_of_(node_of.begin(), node_of.end()) {
    for (const Edge& edge : edges) {
      const int here = of(edge.from), there = of(edge.to);
      if (here == there) continue;
      across_[{here, there}].push_back(edge.from);
      across_[{there, here}].push_back(edge.to);
    }
    for (auto& [pair, ranks] : across_) {
      std::ranges::sort(ranks);
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    }
  }
  int of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  // Precondition: an edge leads from the one to the other, or back.
  int aggregator(int node, int other) const {
    const std::vector<int>& ranks = across_.at({node, other});
    return ranks[static_cast<std::size_t>(other) % ranks.size()];
  }

 private:
  std::vector<int> node_of_;
  std::map<std::pair<int, int>, std::vector<int>> across_;
};

// Messages by sender and receiver.
using Messages = std::map<std::pair<int, int>, Blocks>;

void add(Messages& messages, int from, int to, BlockId block) {
  if (from == to) return;
  Blocks& blocks = messages[{from, to}];
  if (std::ranges::find(blocks, block) == blocks.end()) blocks.push_back(block);
}

// Each rank begins with the ranks behind it, so that no rank is everybody's first.
void move(Builder& builder, const Messages& messages, int ranks) {
  for (int distance = 1; distance < ranks; ++distance)
    for (int from = 0; from < ranks; ++from)
      if (const auto found = messages.find({from, (from + distance) % ranks}); found != messages.end())
        builder.move(from, found->first.second, found->second);
}

void move_directly(Builder& builder, const std::vector<Edge>& edges, int ranks) {
  Messages messages;
  for (const Edge& edge : edges) add(messages, edge.from, edge.to, edge.block);
  move(builder, messages, ranks);
}

void move_by_nodes(Builder& builder, const std::vector<Edge>& edges, const Nodes& nodes, int ranks) {
  Messages near, far, dealt;  // within a node, also to the aggregator; between nodes; from the aggregator
  for (const Edge& edge : edges) {
    const int here = nodes.of(edge.from), there = nodes.of(edge.to);
    if (here == there) {
      add(near, edge.from, edge.to, edge.block);
      continue;
    }
    const int collector = nodes.aggregator(here, there), dealer = nodes.aggregator(there, here);
    add(near, edge.from, collector, edge.block);
    add(far, collector, dealer, edge.block);
    add(dealt, dealer, edge.to, edge.block);
  }
  for (const Messages* messages : {&near, &far, &dealt}) move(builder, *messages, ranks);
}

}  // namespace

std::string_view name(Way way) { return way == Way::direct ? "direct" : "by nodes"; }

Status check(const Graph& graph) {
  std::map<std::pair<int, int>, int> surplus;  // by edge: how often its source names it more than its destination
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    for (const int to : graph.destinations[static_cast<std::size_t>(rank)]) ++surplus[{rank, to}];
    for (const int from : graph.sources[static_cast<std::size_t>(rank)]) --surplus[{from, rank}];
  }
  for (const auto& [edge, count] : surplus)
    if (count != 0)
      return {Code::invalid, "ranks " + std::to_string(edge.first) + " and " + std::to_string(edge.second) +
                                 " do not name the same edges between them"};
  return {};
}

bool has_parallel_edges(const Graph& graph) {
  return std::ranges::any_of(graph.destinations, [](std::vector<int> list) {
    std::ranges::sort(list);
    return std::ranges::adjacent_find(list) != list.end();
  });
}

Result<LoweredPlan> lower(const Graph& graph, Payload payload, Way way, std::span<const int> node_of,
                          const Routes& routes) {
  const Layout layout = lay_out(graph, payload);
  Builder builder(Semantics(layout.owners), routes);
  if (way == Way::direct)
    move_directly(builder, layout.edges, graph.ranks());
  else
    move_by_nodes(builder, layout.edges, Nodes(node_of, layout.edges), graph.ranks());
  return builder.finish();
}

}  // namespace plait::plan::neighbor
