// How ranks share processors.
#include <gtest/gtest.h>

#include <vector>

#include "topo/crowding.h"

namespace plait::topo {
namespace {

Location on(std::uint64_t machine, int core, int cores_allowed) {
  Location location;
  location.machine = machine;
  location.core = core;
  location.cores_allowed = cores_allowed;
  return location;
}

TEST(Crowding, UnboundRanksShareAllThatTheyMayUse) {
  EXPECT_EQ(ranks_per_core(std::vector(8, on(1, -1, 2))), 4);
  EXPECT_EQ(ranks_per_core(std::vector(2, on(1, -1, 16))), 1);
}

TEST(Crowding, BoundRanksShareWithThoseBoundAlike) {
  EXPECT_EQ(ranks_per_core(std::vector{on(1, 0, 1), on(1, 1, 1)}), 1);
  EXPECT_EQ(ranks_per_core(std::vector{on(1, 0, 1), on(1, 0, 1), on(1, 1, 1)}), 2);
}

TEST(Crowding, TheMostCrowdedMachineCounts) {
  EXPECT_EQ(ranks_per_core(std::vector{on(1, -1, 4), on(2, -1, 1), on(2, -1, 1), on(2, -1, 1)}), 3);
  EXPECT_EQ(ranks_per_core({}), 1);
}

}  // namespace
}  // namespace plait::topo
