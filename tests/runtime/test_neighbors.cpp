// A rank's neighbours in a topology, by their places in its lists.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/team/neighbors.h"

namespace plait::runtime {
namespace {

using Places = std::vector<int>;
constexpr int nobody = -1;

TEST(Neighbors, AreOrderedByRankAndLeaveOutNobody) {
  const Neighbors neighbors = neighbors_of({.destinations = {2, nobody, 0, 2}, .sources = {nobody, 1}});
  EXPECT_EQ(neighbors.destinations, 4);
  EXPECT_EQ(neighbors.sources, 2);
  EXPECT_EQ(neighbors.send_cells, (Places{2, 0, 3}));
  EXPECT_EQ(neighbors.receive_cells, (Places{1}));
  EXPECT_EQ(neighbors.lists.destinations, (Places{2, 0, 2}));
  EXPECT_EQ(neighbors.lists.sources, (Places{1}));
  EXPECT_EQ(neighbors.most_to_one_rank, 2);
}

TEST(Neighbors, MayBeNone) {
  const Neighbors neighbors = neighbors_of({});
  EXPECT_TRUE(neighbors.send_cells.empty());
  EXPECT_EQ(neighbors.most_to_one_rank, 0);
  EXPECT_EQ(question_of(neighbors).send.size(), 1u);  // a host may want an address
}

TEST(Neighbors, AreAskedForTheOrderOfEdgesToOneRank) {
  const EdgeQuestion question = question_of(neighbors_of({.destinations = {2, 0, nobody, 2}, .sources = {3, 1, 3}}));
  EXPECT_EQ(question.send, (Places{0, 0, 0, 1}));
  EXPECT_EQ(question.offsets, (Places{0, 1, 2, 3}));
  EXPECT_EQ(question.sources, (Places{1, 3, 3}));
}

TEST(Neighbors, ReceiveEdgesOfAPairAsTheAnswerSays) {
  Neighbors neighbors = neighbors_of({.destinations = {}, .sources = {3, 1, 3}});
  EXPECT_EQ(neighbors.receive_cells, (Places{1, 0, 2}));
  EdgeQuestion question = question_of(neighbors);
  question.receive = {1, 0, 0};
  neighbors.paired_cells[Pairing::index(Collective::neighbor_alltoallv, true)] = neighbors.receive_cells;
  order_by_answer(neighbors.paired_cells[Pairing::index(Collective::neighbor_alltoallv, true)], question);
  EXPECT_EQ(neighbors.cells_to_receive(Collective::neighbor_alltoallv, true), (Places{1, 2, 0}));
  EXPECT_EQ(neighbors.cells_to_receive(Collective::neighbor_alltoallw, true), (Places{1, 2, 0}));
  EXPECT_EQ(neighbors.cells_to_receive(Collective::neighbor_alltoallv, false), (Places{1, 0, 2}));
  EXPECT_EQ(neighbors.cells_to_receive(Collective::neighbor_allgather, true), (Places{1, 0, 2}));
}

}  // namespace
}  // namespace plait::runtime
