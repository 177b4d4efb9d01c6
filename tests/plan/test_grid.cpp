// The coordinates of ranks where a level of switches lies above the nodes.
#include "plan/grid.h"

#include <gtest/gtest.h>

#include "all_candidates.h"
#include "plan/proof.h"

namespace plait {
namespace {

// A job that fills the nodes in turn; by node its switch and its number of ranks.
struct Node {
  std::uint64_t leaf_switch;
  int ranks;
};

Hierarchy on_switches(const std::vector<Node>& nodes) {
  std::vector<Location> locations;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    Location location;
    location.host.low = node;
    location.leaf_switch = nodes[node].leaf_switch;
    locations.insert(locations.end(), static_cast<std::size_t>(nodes[node].ranks), location);
  }
  return Hierarchy::from_locations(locations);
}

TEST(GridOnSwitches, NodesAreTheNodes) {
  const Hierarchy hierarchy = on_switches({{1, 2}, {1, 2}, {2, 2}, {2, 2}});
  const Grid nodes = make_grid(hierarchy, GridKind::nodes, -1), full = make_grid(hierarchy, GridKind::full, -1);
  EXPECT_EQ(nodes.cardinality, (std::vector<int>{4, 2}));
  EXPECT_EQ(nodes.coordinate[5], (std::vector<int>{2, 1}));
  EXPECT_EQ(full.cardinality, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(full.coordinate[5], (std::vector<int>{1, 0, 1}));
}

TEST(GridOnSwitches, OneRankANodeHasNoGridOfNodes) {
  EXPECT_FALSE(has_nodes_grid(on_switches({{1, 1}, {1, 1}, {2, 1}, {2, 1}})));
  EXPECT_FALSE(has_nodes_grid(Hierarchy::nodes_of(std::vector<int>{1, 1, 1})));
  EXPECT_TRUE(has_nodes_grid(on_switches({{1, 1}, {1, 1}, {2, 1}, {2, 2}})));
  EXPECT_TRUE(has_nodes_grid(Hierarchy::nodes_of(std::vector<int>{2, 1})));
}

TEST(GridOnSwitches, OneNodeIsCutAtItsOutermostGroups) {
  std::vector<Location> locations(4);
  for (int rank = 0; rank < 4; ++rank) {
    locations[static_cast<std::size_t>(rank)].package = rank / 2;
    locations[static_cast<std::size_t>(rank)].core = rank;
  }
  EXPECT_EQ(make_grid(Hierarchy::from_locations(locations), GridKind::nodes, -1).cardinality,
            (std::vector<int>{2, 2}));
}

TEST(GridOnSwitches, EveryCandidateIsProven) {
  std::mt19937 random(1);
  for (const std::vector<Node>& nodes : {std::vector<Node>{{1, 2}, {1, 2}, {2, 2}, {2, 2}},
                                         std::vector<Node>{{1, 1}, {1, 1}, {2, 1}, {2, 1}},
                                         std::vector<Node>{{1, 1}, {2, 3}, {1, 2}}}) {
    const Hierarchy hierarchy = on_switches(nodes);
    for (int c = 0; c < collective_count; ++c) {
      const auto collective = static_cast<Collective>(c);
      const int root = rooted(collective) ? hierarchy.ranks() - 1 : 0;
      for (const Candidate& candidate : all_candidates(collective, hierarchy, true, 4, 50, 2, random)) {
        SCOPED_TRACE(std::string(name(collective)) + " " + candidate.name + " on " + hierarchy.describe());
        const auto plan = lower(candidate, collective, root, true, hierarchy, true);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        const Status status = prove(plan->semantics, plan->schedules, true);
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
  }
}

}  // namespace
}  // namespace plait
