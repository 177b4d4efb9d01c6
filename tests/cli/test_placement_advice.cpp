#include <gtest/gtest.h>

#include "plan/synthesis/placement.h"
#include "tuner/text/placement_advice.h"

namespace plait::tuner {
namespace {

constexpr double mebibyte = 1 << 20;

std::vector<int> by_slot(int nodes, int each) {
  std::vector<int> result;
  for (int rank = 0; rank < nodes * each; ++rank) result.push_back(rank / each);
  return result;
}

std::vector<int> by_node(int nodes, int each) {
  std::vector<int> result;
  for (int rank = 0; rank < nodes * each; ++rank) result.push_back(rank % nodes);
  return result;
}

GridTraffic allreduces(std::vector<GridAxis> axes, double calls = 10, double bytes = mebibyte) {
  return {.axes = std::move(axes), .collective = Collective::allreduce, .calls = calls, .bytes = bytes};
}

PlacementAdvice advice_for(std::vector<int> nodes, std::vector<GridTraffic> traffic) {
  return placement_advice({.nodes = std::move(nodes),
                           .machine = default_machine(),
                           .traffic = std::move(traffic),
                           .launcher = Launcher::openmpi});
}

// What is better; else nothing.
std::string advice(std::vector<int> nodes, std::vector<GridTraffic> traffic) {
  const PlacementAdvice said = advice_for(std::move(nodes), std::move(traffic));
  EXPECT_EQ(said.better, said.sentence.find("nothing to gain") == std::string::npos) << said.sentence;
  EXPECT_TRUE(!said.better || said.times >= 1.2) << said.times;
  return said.better ? said.sentence : "";
}

std::string reason(std::vector<int> nodes, std::vector<GridTraffic> traffic) {
  const PlacementAdvice said = advice_for(std::move(nodes), std::move(traffic));
  EXPECT_FALSE(said.better) << said.sentence;
  const std::string before = "placement: nothing to gain: ";
  EXPECT_EQ(said.sentence.substr(0, before.size()), before);
  return said.sentence.substr(std::min(before.size(), said.sentence.size()));
}

bool begins_with(const std::string& text, const std::string& beginning) { return text.starts_with(beginning); }

TEST(PlacementAdvice, ByNodeWhereTheOuterAxisReduces) {
  const std::string said = advice(by_slot(2, 4), {allreduces({{4, 2}})});
  EXPECT_TRUE(begins_with(said,
                          "placement: axis 0 (4 ranks, stride 2) crosses nodes: mapping by node (mpirun --map-by "
                          "node) would be "))
      << said;
  EXPECT_TRUE(said.ends_with("x faster")) << said;
}

TEST(PlacementAdvice, NamesTheOptionsOfHydra) {
  const auto said = [](std::vector<int> nodes, GridAxis axis) {
    return placement_advice({.nodes = std::move(nodes),
                             .machine = default_machine(),
                             .traffic = {allreduces({axis})},
                             .launcher = Launcher::hydra})
        .sentence;
  };
  EXPECT_NE(said(by_slot(2, 4), {4, 2}).find("mapping by node (mpiexec -ppn 1)"), std::string::npos);
  EXPECT_NE(said(by_node(2, 4), {4, 1}).find("mapping by slot (mpiexec -ppn 4)"), std::string::npos);
}

TEST(PlacementAdvice, BySlotWhereTheInnerAxisReduces) {
  const std::string said = advice(by_node(2, 4), {allreduces({{4, 1}})});
  EXPECT_TRUE(begins_with(said,
                          "placement: axis 1 (4 ranks, stride 1) crosses nodes: mapping by slot (mpirun --map-by "
                          "slot) would be "))
      << said;
}

// Neither of mpirun's own mappings keeps the middle axis on a node.
TEST(PlacementAdvice, ARankfileForTheRest) {
  const std::string said = advice(by_slot(4, 2), {allreduces({{2, 2}})});
  EXPECT_TRUE(begins_with(said,
                          "placement: axis 1 (2 ranks, stride 2) crosses nodes: a rankfile from `plait place "
                          "--system 4,2 --axes 2,2,2 --weights 1:1 --bytes 1048576 --hosts HOST:2,... --rankfile "
                          "FILE` would be "))
      << said;
}

// The two axes want opposite things: the one with more time in it wins, and is named.
TEST(PlacementAdvice, TheHeavierAxisDecides) {
  const std::vector<GridTraffic> outer = {allreduces({{2, 4}}, 100), allreduces({{4, 1}}, 1)};
  const std::vector<GridTraffic> inner = {allreduces({{2, 4}}, 1), allreduces({{4, 1}}, 100)};
  EXPECT_EQ(advice(by_slot(2, 4), inner), "");
  EXPECT_EQ(advice(by_node(4, 2), outer), "");
  EXPECT_TRUE(begins_with(advice(by_slot(2, 4), outer), "placement: axis 0 ")) << advice(by_slot(2, 4), outer);
  EXPECT_TRUE(begins_with(advice(by_node(2, 4), inner), "placement: axis 1 ")) << advice(by_node(2, 4), inner);
}

// Wherever the ranks are: there is something to say exactly when the axis crosses nodes.
TEST(PlacementAdvice, EveryPlacementOfAGrid) {
  const std::vector<int> system = {4, 4}, axes = {2, 4, 2};
  for (const ParallelismMatrix& matrix : parallelism_matrices(system, axes)) {
    std::vector<int> nodes = devices_of_grid(system, axes, matrix);
    for (int& node : nodes) node = 7 - node / system[1];
    EXPECT_EQ(advice(nodes, {allreduces({{4, 2}})}) != "", matrix.rows[1][0] > 1) << text(matrix);
  }
}

TEST(PlacementAdvice, OtherCollectives) {
  for (const Collective collective :
       {Collective::reduce, Collective::bcast, Collective::allgather, Collective::allgatherv,
        Collective::reduce_scatter, Collective::reduce_scatter_block}) {
    GridTraffic traffic = allreduces({{4, 2}});
    traffic.collective = collective;
    EXPECT_NE(advice(by_slot(2, 4), {traffic}), "") << name(collective);
    EXPECT_EQ(advice(by_node(2, 4), {traffic}), "") << name(collective);
  }
  GridTraffic traffic = allreduces({{4, 2}});
  traffic.collective = Collective::alltoall;
  EXPECT_EQ(advice(by_slot(2, 4), {traffic}), "") << "not modelled";
}

TEST(PlacementAdvice, SilentWhereThereIsNothingToGain) {
  EXPECT_EQ(advice(by_slot(2, 4), {allreduces({{4, 1}})}), "") << "within nodes already";
  EXPECT_EQ(advice(by_slot(2, 4), {allreduces({{8, 1}})}), "") << "all ranks";
  EXPECT_EQ(advice(by_slot(1, 8), {allreduces({{4, 2}})}), "") << "one node";
  EXPECT_EQ(advice(by_slot(8, 1), {allreduces({{4, 2}})}), "") << "one rank a node";
  EXPECT_EQ(advice(by_slot(2, 4), {}), "") << "no traffic";
  EXPECT_EQ(advice({}, {allreduces({{4, 2}})}), "") << "nodes not known";
  // All ranks' traffic does not care, and outweighs the axis'.
  EXPECT_EQ(advice(by_slot(2, 4), {allreduces({{4, 2}}, 1), allreduces({{8, 1}}, 100)}), "");
}

TEST(PlacementAdvice, SilentWhereTheJobIsNoGrid) {
  EXPECT_EQ(advice({0, 0, 0, 0, 0, 1, 1, 1}, {allreduces({{4, 2}})}), "") << "nodes of 5 and 3 ranks";
  EXPECT_EQ(advice({0, 1, 1, 0, 1, 0, 0, 1}, {allreduces({{4, 2}})}), "") << "no placement of the grid";
  EXPECT_EQ(advice(by_slot(2, 6), {allreduces({{2, 2}}), allreduces({{3, 2}})}), "") << "two grids";
  EXPECT_EQ(advice(by_slot(2, 4), {allreduces({{3, 1}})}), "") << "3 does not divide 8";
}

TEST(PlacementAdvice, SaysWhyThereIsNothingToGain) {
  const std::vector<GridTraffic> rows = {allreduces({{4, 2}})};
  EXPECT_EQ(reason({}, rows), "where the ranks are is not known");
  EXPECT_EQ(reason(by_slot(1, 8), rows), "all ranks are on one node");
  EXPECT_EQ(reason(by_slot(8, 1), rows), "each node has one rank");
  EXPECT_EQ(reason({0, 0, 0, 0, 0, 1, 1, 1}, rows), "the nodes have different numbers of ranks");
  EXPECT_EQ(reason(by_slot(2, 4), {allreduces({{3, 1}})}), "the communicators are the rows of no one process grid");
  EXPECT_EQ(reason(by_slot(2, 4), {allreduces({{8, 1}})}), "no communicator is a row of a process grid");
  EXPECT_EQ(reason(by_slot(2, 4), {allreduces({{4, 2}}, 10, 0)}),
            "the rows of the grid moved nothing that depends on it");
  EXPECT_EQ(reason(by_node(2, 4), rows), "no other placement would be 1.2 times as fast");
  const std::vector<GridTraffic> many = {allreduces({{2, 1}}), allreduces({{2, 4}}), allreduces({{2, 16}}),
                                         allreduces({{2, 64}}), allreduces({{2, 256}})};
  EXPECT_EQ(reason(by_slot(2, 512), many), "the grid has more than 8 dimensions, or more than 1024 kinds of calls");
}

}  // namespace
}  // namespace plait::tuner
