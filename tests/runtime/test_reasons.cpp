#include "runtime/job/reasons.h"

#include <gtest/gtest.h>

#include "plan/choose/planner.h"

namespace plait::runtime {
namespace {

TEST(Communicator, IsSetUpOnlyWherePlansCanBeMade) {
  EXPECT_EQ(reasons::of_communicator(false, 2), nullptr);
  EXPECT_EQ(reasons::of_communicator(false, plan::most_team_ranks), nullptr);
  EXPECT_STREQ(reasons::of_communicator(false, plan::most_team_ranks + 1), plan::reasons::too_large);
  EXPECT_STREQ(reasons::of_communicator(false, 1), reasons::one_rank);
  EXPECT_STREQ(reasons::of_communicator(true, 4), reasons::inter_communicator);
}

}  // namespace
}  // namespace plait::runtime
