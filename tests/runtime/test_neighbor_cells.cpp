// Whose data is in which of the program's places, and how a host that pairs edges in its own way is asked.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/team/neighbor_cells.h"
#include "tests/runtime/in_process_oob.h"

namespace plait::runtime {
namespace {

using Cells = std::vector<int>;

TEST(NeighborCells, AreOrderedByTheOtherRankWithoutPlacesOfNone) {
  const Neighbors neighbors = neighbors_from({.sources = {5, -1, 2}, .destinations = {3, 1, -1, 3, 1, 3}}, -1);
  EXPECT_EQ(neighbors.sources, 3);
  EXPECT_EQ(neighbors.destinations, 6);
  EXPECT_EQ(neighbors.receive_cells, (Cells{2, 0}));
  EXPECT_EQ(neighbors.send_cells, (Cells{1, 4, 0, 3, 5}));
  EXPECT_EQ(neighbors.lists.destinations, (Cells{3, 1, 3, 1, 3}));
  EXPECT_EQ(neighbors.lists.sources, (Cells{5, 2}));
  EXPECT_EQ(neighbors.most_to_one_rank, 3);
}

TEST(NeighborCells, OfNoNeighborsAreNone) {
  const Neighbors neighbors = neighbors_from({}, -1);
  EXPECT_TRUE(neighbors.send_cells.empty());
  EXPECT_EQ(neighbors.most_to_one_rank, 0);
}

// Two ranks with three edges to each other and one to themselves, between places of no rank.
Neighbors of_pair(int rank) {
  const int other = 1 - rank;
  return neighbors_from({.sources = {other, -1, other, rank, other}, .destinations = {rank, other, other, -1, other}},
                        -1);
}

// What that host's functions bring: the edges in their order, or the last one first.
Cells brought(bool reversed) { return reversed ? Cells{2, -1, 1, 0, 0} : Cells{0, -1, 1, 0, 2}; }

TEST(NeighborCells, ArePairedAsTheHostPairsThem) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    Neighbors neighbors = of_pair(oob.rank());
    const Status paired = pair_edges(oob, neighbors, [&](PairingQuestion& question, std::size_t kind, bool posted) {
      EXPECT_EQ(question.send, (Cells{0, 0, 1, 0, 2}));
      EXPECT_EQ(question.counts, Cells(5, 1));
      EXPECT_EQ(question.places, (Cells{0, 1, 2, 3, 4}));
      question.receive = brought(posted && kind == 1);
      return true;
    });
    if (!paired.ok()) return paired.message();
    const Cells own = {3}, forwards = {0, 2, 4}, backwards = {4, 2, 0};
    const auto expected = [&](const Cells& others) {
      Cells all = oob.rank() == 0 ? own : others;
      const Cells& rest = oob.rank() == 0 ? others : own;
      all.insert(all.end(), rest.begin(), rest.end());
      return all;
    };
    for (const Collective collective : {Collective::neighbor_alltoall, Collective::neighbor_alltoallv})
      for (const bool posted : {false, true}) {
        const bool reversed = posted && collective == Collective::neighbor_alltoallv;
        if (neighbors.cells_to_receive(collective, posted) != expected(reversed ? backwards : forwards))
          return "other cells";
      }
    return neighbors.cells_to_receive(Collective::neighbor_allgather, true) == neighbors.receive_cells
               ? ""
               : "edges that carry the same are paired";
  }),
            "");
}

TEST(NeighborCells, OfWhichOneRanksHostFailsAreNobodys) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    Neighbors neighbors = of_pair(oob.rank());
    int asked = 0;
    const Status paired = pair_edges(oob, neighbors, [&](PairingQuestion&, std::size_t kind, bool) {
      ++asked;
      return oob.rank() == 0 || kind == 0;
    });
    if (asked != 4) return "it does not ask all that the others ask";
    return paired.ok() ? "it goes on" : "";
  }),
            "");
}

}  // namespace
}  // namespace plait::runtime
