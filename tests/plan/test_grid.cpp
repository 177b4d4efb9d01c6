// The coordinates of ranks where a level of switches lies above the nodes.
#include "plan/model/grid.h"

#include <gtest/gtest.h>

#include "all_candidates.h"
#include "plan/lower/proof.h"

namespace plait::plan {
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

TEST(GridOnSwitches, SwitchesAreTheOutermostLevel) {
  const Hierarchy hierarchy = on_switches({{1, 2}, {1, 2}, {2, 2}, {2, 2}});
  const Grid full(hierarchy, GridKind::full, -1);
  ASSERT_EQ(full.levels(), 3);
  for (int level = 0; level < 3; ++level) EXPECT_EQ(full.cardinality(level), 2);
  EXPECT_EQ(full.coordinate(5, 0), 1);
  EXPECT_EQ(full.coordinate(5, 1), 0);
  EXPECT_EQ(full.coordinate(5, 2), 1);
}

TEST(GridOnSwitches, EveryCandidateIsProven) {
  std::mt19937 random(1);
  for (const std::vector<Node>& nodes :
       {std::vector<Node>{{1, 2}, {1, 2}, {2, 2}, {2, 2}}, std::vector<Node>{{1, 1}, {1, 1}, {2, 1}, {2, 1}},
        std::vector<Node>{{1, 1}, {2, 3}, {1, 2}}}) {
    const Hierarchy hierarchy = on_switches(nodes);
    for (int c = 0; c < planned_collectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      const int root = rooted(collective) ? hierarchy.ranks() - 1 : 0;
      for (const Candidate& candidate : all_candidates(collective, hierarchy, true, 4, 50, 2, random)) {
        SCOPED_TRACE(std::string(name(collective)) + " " + candidate.name + " on " + hierarchy.describe());
        const auto plan = lower(candidate, collective, root, true, hierarchy);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        const Status status = prove(plan->semantics, plan->schedules, true);
        EXPECT_TRUE(status.ok()) << status.message();
      }
    }
  }
}

}  // namespace
}  // namespace plait::plan
