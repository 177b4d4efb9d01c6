// A topology's graph, brought together by ranks of one process, and the schedules of calls on it.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "plan/model/routes.h"
#include "runtime/team/neighborhood.h"
#include "tests/runtime/in_process_oob.h"

namespace plait::runtime {
namespace {

using plan::neighbor::Graph;
using plan::neighbor::Payload;

// Of all ranks alike, by a seed.
Graph random_graph(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  const auto all = static_cast<std::size_t>(ranks);
  Graph graph{std::vector<std::vector<int>>(all), std::vector<std::vector<int>>(all)};
  for (int edge = 0; edge < 4 * ranks; ++edge) {
    const std::size_t from = random() % all, to = random() % all;
    graph.destinations[from].push_back(static_cast<int>(to));
    graph.sources[to].push_back(static_cast<int>(from));
  }
  return graph;
}

NeighborLists lists_of(const Graph& graph, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return {.destinations = graph.destinations[index], .sources = graph.sources[index]};
}

NeighborShape shape_of(const NeighborLists& lists, std::uint64_t bytes) {
  NeighborShape shape{.payload = Payload::of_edge, .bytes = bytes, .input = {}, .output = {}};
  for (std::size_t i = 0; i < lists.destinations.size(); ++i) shape.input.push_back({i * bytes, bytes});
  for (std::size_t i = 0; i < lists.sources.size(); ++i) shape.output.push_back({i * bytes, bytes});
  return shape;
}

class NeighborhoodOf : public testing::TestWithParam<int> {};

TEST_P(NeighborhoodOf, AllRanksKnowTheGraph) {
  const Graph graph = random_graph(GetParam(), 7);
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const Result<Graph> gathered = gather_graph(oob, lists_of(graph, oob.rank()));
    if (!gathered.ok()) return gathered.status().message();
    const bool same = gathered->destinations == graph.destinations && gathered->sources == graph.sources;
    return same && can_plan(*gathered) ? "" : "another graph";
  }),
            "");
}

TEST_P(NeighborhoodOf, ListsThatDoNotFitTogetherAreSeenByAll) {
  const Graph graph = random_graph(GetParam(), 8);
  InProcessJob job(GetParam());
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    NeighborLists mine = lists_of(graph, oob.rank());
    if (oob.rank() == oob.ranks() / 2) mine.sources.push_back(0);
    const Result<Graph> gathered = gather_graph(oob, mine);
    if (!gathered.ok()) return gathered.status().message();
    return can_plan(*gathered) ? "taken for a graph" : "";
  }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, NeighborhoodOf, testing::Values(1, 2, 5, 64, 256));

TEST(Neighborhood, SchedulesAreKeptByShapeAndTouchTheirBytes) {
  const Graph graph = random_graph(6, 9);
  const std::vector<int> node_of = {0, 0, 0, 1, 1, 1};
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    Neighborhood neighborhood(
        graph,
        {.rank = rank, .node_of = node_of, .routes = routes_by_node(node_of, ChannelKind::shm, ChannelKind::mpi)});
    const NeighborLists lists = lists_of(graph, rank);
    const auto small = neighborhood.find(shape_of(lists, 8)), long_one = neighborhood.find(shape_of(lists, 1 << 20));
    ASSERT_TRUE(small->accelerated && long_one->accelerated) << small->reason << long_one->reason;
    EXPECT_STREQ(small->plan, "neighbours by nodes");
    EXPECT_STREQ(long_one->plan, "neighbours direct");
    EXPECT_EQ(neighborhood.find(shape_of(lists, 8)), small);
    EXPECT_EQ(small->schedule.output_bytes, 8 * lists.sources.size());
    EXPECT_EQ(small->schedule.input_bytes, 8 * lists.destinations.size());
  }
}

TEST(Neighborhood, AGraphThatPlanningWouldTakeTooMuchMemoryForIsNotPlanned) {
  constexpr int ranks = 256;
  Graph graph{std::vector<std::vector<int>>(ranks), std::vector<std::vector<int>>(ranks)};
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      graph.destinations[from].push_back(static_cast<int>(to));
      graph.sources[to].push_back(static_cast<int>(from));
    }
  EXPECT_FALSE(can_plan(graph));
}

}  // namespace
}  // namespace plait::runtime
