// Which classes a communicator has trials for, and what is expected of the host in them: without ranks.
#include "runtime/trial/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/job/job.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

class TrialsOfACommunicator : public testing::Test {
 protected:
  TrialsOfACommunicator() : process_(4) {
    process_.config().trial = TrialMode::all;
    process_.config().host_when_faster = true;
    process_.config().cache = false;
    process_.config().trial_after = 0;
  }

  static Call sum(std::size_t bytes) {
    return {.collective = Collective::allreduce, .count = bytes, .element_bytes = 1};
  }
  // Its trial, concluded with these times, in nanoseconds.
  static void settle(Trial& trial, std::uint64_t host, std::uint64_t plans, std::size_t bytes) {
    for (int call = 0; trial.open() && call < 10'000'000; ++call) {
      const bool timed = trial.due();
      trial.count();
      if (!timed) continue;
      trial.note(trial.candidate() == Trial::host ? host : plans, bytes);
      if (trial.complete()) trial.conclude();
    }
    EXPECT_FALSE(trial.open());
  }

  const std::vector<int> shape_ = {4};
  Process process_;
  Planner planner_{Hierarchy::nodes_of(shape_), 0, {}};
};

constexpr std::size_t size = 1 << 20;

TEST_F(TrialsOfACommunicator, BeginWithAPlanWhereNothingIsKnown) {
  Trials trials(planner_);
  trials.start("4", {});
  ASSERT_NE(trials.of(sum(size)), nullptr);
  EXPECT_EQ(trials.of(sum(size))->trial.taken(), 1);
}

TEST_F(TrialsOfACommunicator, BeginWithTheHostBesideASizeWhereItHasWon) {
  Trials trials(planner_);
  trials.start("4", {});
  settle(trials.of(sum(size))->trial, 500'000, 1'000'000, size);
  ASSERT_EQ(trials.of(sum(size))->trial.taken(), Trial::host);
  EXPECT_EQ(trials.of(sum(2 * size))->trial.taken(), Trial::host);
  EXPECT_EQ(trials.of(sum(256 * size))->trial.taken(), 1) << "too far away";
}

TEST_F(TrialsOfACommunicator, BeginWithTheHostBesideASizeWhereItWonInAnEarlierJob) {
  Trials trials(planner_);
  trials.start("4", {{.collective = Collective::allreduce, .size_class = 21, .plan = "host", .nanoseconds = 500'000}});
  EXPECT_EQ(trials.of(sum(2 * size))->trial.taken(), Trial::host);
}

// A rank that asks for a class early, as what it has under way needs it, goes on like one that asks in turn.
TEST_F(TrialsOfACommunicator, GoTheSameWayWheneverAClassIsAskedForOutOfTurn) {
  Trials early(planner_), late(planner_);
  for (Trials* trials : {&early, &late}) trials->start("4", {});
  const Trials::Found asked = early.find(sum(2 * size), Moment::own);
  ASSERT_NE(asked.tried, nullptr);
  EXPECT_EQ(asked.tried->trial.taken(), 1);
  for (Trials* trials : {&early, &late}) settle(trials->of(sum(size))->trial, 500'000, 1'000'000, size);
  EXPECT_EQ(late.find(sum(2 * size), Moment::own).tried->trial.taken(), 1);
  for (Trials* trials : {&early, &late}) {
    const Trials::Found in_turn = trials->find(sum(2 * size), Moment::in_order);
    EXPECT_TRUE(in_turn.changed);
    EXPECT_EQ(in_turn.tried->trial.taken(), Trial::host);
    EXPECT_FALSE(trials->find(sum(2 * size), Moment::in_order).changed);
  }
}

// What is kept of a class is at its shortest size, whichever call came first.
TEST_F(TrialsOfACommunicator, KnowAClassAtItsShortestSize) {
  for (const std::size_t first : {size, 2 * size - 8}) {
    Trials trials(planner_);
    trials.start("4", {});
    Trial& trial = trials.of(sum(first))->trial;
    settle(trial, 500 * first, first, first);
    EXPECT_NEAR(static_cast<double>(trial.taken_nanoseconds()), size, 0.05 * size);
  }
}

}  // namespace
}  // namespace plait::runtime
