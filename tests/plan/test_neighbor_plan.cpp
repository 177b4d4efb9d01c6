// Plans of neighbourhood collectives: proven for many graphs, and what they send.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "plan/lower/proof.h"
#include "plan/neighbor/neighbor_plan.h"

namespace plait::plan::neighbor {
namespace {

Graph empty_graph(int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  return {std::vector<std::vector<int>>(all), std::vector<std::vector<int>>(all)};
}

void add_edge(Graph& graph, int from, int to) {
  graph.destinations[static_cast<std::size_t>(from)].push_back(to);
  graph.sources[static_cast<std::size_t>(to)].push_back(from);
}

// The eight around each rank of a periodic grid: where it is narrow some of them are the same rank, or the rank itself.
Graph stencil(int rows, int columns) {
  Graph graph = empty_graph(rows * columns);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      for (int down = -1; down <= 1; ++down)
        for (int right = -1; right <= 1; ++right)
          if (down != 0 || right != 0)
            add_edge(graph, row * columns + column,
                     (row + down + rows) % rows * columns + (column + right + columns) % columns);
  return graph;
}

std::vector<int> nodes_of(int ranks, int per_node) {
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / per_node);
  return node_of;
}

LoweredPlan proven(const Graph& graph, Payload payload, Way way, const std::vector<int>& node_of, bool shared) {
  Result<LoweredPlan> lowered = lower(graph, payload, way, node_of,
                                      shared ? routes_by_node(node_of, ChannelKind::shm, ChannelKind::mpi) : Routes());
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  const Status status = prove(lowered->semantics, lowered->schedules, true);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(*lowered);
}

int messages(const LoweredPlan& plan, ChannelKind channel) {
  int count = 0;
  for (const Schedule& schedule : plan.schedules)
    count += static_cast<int>(std::ranges::count_if(
        schedule.steps, [&](const Step& step) { return step.kind == StepKind::send && step.channel == channel; }));
  return count;
}

TEST(NeighborPlan, IsProvenForEveryStencilAndNode) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 2}, {2, 2}, {2, 4}, {3, 3}, {4, 5}, {1, 7}})
    for (const int per_node : {1, 2, 3, 4, 100})
      for (const Payload payload : {Payload::of_edge, Payload::of_source})
        for (const Way way : {Way::direct, Way::by_nodes})
          for (const bool shared : {true, false})
            proven(stencil(rows, columns), payload, way, nodes_of(rows * columns, per_node), shared);
}

TEST(NeighborPlan, IsProvenForRandomGraphs) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int turn = 0; turn < 60; ++turn) {
    const int ranks = 1 + static_cast<int>(random() % 20);
    Graph graph = empty_graph(ranks);
    const auto any = [&] { return static_cast<int>(random() % static_cast<unsigned>(ranks)); };
    for (unsigned edges = random() % 60; edges > 0; --edges) add_edge(graph, any(), any());
    std::vector<int> node_of;
    for (int rank = 0; rank < ranks; ++rank) node_of.push_back(static_cast<int>(random() % 5));
    ASSERT_TRUE(check(graph).ok());
    for (const Payload payload : {Payload::of_edge, Payload::of_source})
      for (const Way way : {Way::direct, Way::by_nodes}) proven(graph, payload, way, node_of, random() % 2 == 0);
  }
}

// Four nodes of two ranks, a grid of 2 x 4: each rank's eight neighbours are all others, some of them twice.
TEST(NeighborPlan, OneMessageAPairOfNodes) {
  const Graph graph = stencil(2, 4);
  const std::vector<int> node_of = nodes_of(8, 2);
  const LoweredPlan direct = proven(graph, Payload::of_edge, Way::direct, node_of, true);
  const LoweredPlan by_nodes = proven(graph, Payload::of_edge, Way::by_nodes, node_of, true);
  EXPECT_EQ(messages(direct, ChannelKind::mpi), 32);  // five other ranks each, one of them on the own node
  EXPECT_EQ(messages(by_nodes, ChannelKind::mpi), 4 * 3);
  const LoweredPlan same = proven(graph, Payload::of_source, Way::by_nodes, node_of, true);
  EXPECT_EQ(messages(same, ChannelKind::mpi), 4 * 3);
}

// It cannot know how long edges are.
TEST(NeighborPlan, WhoHasNoEdgeTakesNoPart) {
  Graph graph = empty_graph(6);
  for (const int to : {3, 4, 1}) add_edge(graph, 0, to);
  add_edge(graph, 4, 1);
  for (const Payload payload : {Payload::of_edge, Payload::of_source}) {
    const LoweredPlan plan = proven(graph, payload, Way::by_nodes, nodes_of(6, 3), true);
    EXPECT_TRUE(plan.schedules[2].steps.empty());
    EXPECT_TRUE(plan.schedules[5].steps.empty());
  }
}

TEST(NeighborPlan, ListsThatDoNotMatchAreNamed) {
  Graph graph = stencil(1, 4);
  graph.destinations[2].pop_back();
  const Status status = check(graph);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("ranks 2 and"), std::string::npos) << status.message();
  graph = stencil(1, 4);
  graph.sources[1].push_back(3);
  EXPECT_FALSE(check(graph).ok());
}

}  // namespace
}  // namespace plait::plan::neighbor
