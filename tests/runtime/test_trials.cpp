// Which classes a communicator has trials for, and what is expected of the host in them: without ranks.
#include "runtime/trial/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "runtime/job/job.h"
#include "tests/runtime/process.h"
#include "tests/runtime/scarce_memory.h"

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

// ---- Classes that nothing is planned for yet ----

class UnplannedClasses : public TrialsOfACommunicator {
 protected:
  UnplannedClasses() { process_.config().trial_after = most_calls; }

  // Calls that the host has before one of them is planned.
  static int calls_by_host(Trials& trials, const Call& call) {
    for (int calls = 0;;) {
      TrialClass* found = trials.of(call);
      if (found == nullptr || found->trial.planned()) return calls;
      EXPECT_EQ(found->trial.taken(), Trial::host);
      EXPECT_FALSE(found->trial.open());
      while (!found->trial.due()) {
        found->trial.count();
        ++calls;
      }
      trials.plan(*found);
    }
  }
  static constexpr int most_calls = 64;
};

TEST_F(UnplannedClasses, AreTheHostsUntilPlanningPays) {
  Trials trials(planner_);
  trials.start("4", {});
  const int few = calls_by_host(trials, sum(8)), fewer = calls_by_host(trials, sum(1 << 15));
  EXPECT_GT(few, 12);
  EXPECT_LE(few, 16 * most_calls);
  EXPECT_LT(fewer, few);
  EXPECT_EQ(calls_by_host(trials, sum(size)), 0) << "one call is worth it";
  EXPECT_EQ(calls_by_host(trials, sum(8)), 0) << "once";
}

TEST_F(UnplannedClasses, WaitLessTheMoreThereIsToGain) {
  Trials trials(planner_);
  const TuningRecord little{.collective = Collective::allreduce,
                            .size_class = 4,
                            .plan = "none",
                            .nanoseconds = 1000,
                            .host_nanoseconds = 1100};
  TuningRecord much = little;
  much.size_class = 13;
  much.host_nanoseconds = 100'000;
  trials.start("4", {little, much});
  EXPECT_GT(calls_by_host(trials, sum(8)), most_calls);
  EXPECT_LE(calls_by_host(trials, sum(1 << 12)), 1);
}

TEST_F(UnplannedClasses, AreNotBetweenNodes) {
  const std::vector<int> nodes = {2, 2};
  Planner planner(Hierarchy::nodes_of(nodes), 0, {});
  Trials trials(planner);
  trials.start("2x2", {});
  EXPECT_EQ(calls_by_host(trials, sum(8)), 0);
}

TEST_F(UnplannedClasses, AreNotWhereNothingIsToBeTried) {
  process_.config().trial_percent = 0;
  Trials trials(planner_);
  trials.start("4", {});
  EXPECT_EQ(calls_by_host(trials, sum(8)), 0);
}

// What a rank has under way is planned, whatever its blocking calls do, which stay alike on all ranks.
TEST_F(UnplannedClasses, ArePlannedForOperationsUnderWay) {
  Trials early(planner_), late(planner_);
  for (Trials* trials : {&early, &late}) trials->start("4", {});
  EXPECT_TRUE(early.find(sum(8), Moment::own).tried->trial.planned());
  for (Trials* trials : {&early, &late}) EXPECT_FALSE(trials->find(sum(8), Moment::in_order).tried->trial.planned());
  EXPECT_TRUE(late.find(sum(8), Moment::own).tried->trial.planned());
  EXPECT_EQ(calls_by_host(early, sum(8)), calls_by_host(late, sum(8)));
  EXPECT_EQ(early.of(sum(8))->trial.taken(), late.of(sum(8))->trial.taken());
}

// What was known before of two classes as near counts alike, whichever of them this rank has asked for.
TEST_F(UnplannedClasses, WaitAlikeWhicheverKnownOneWasAskedForOutOfTurn) {
  const std::string plan = planner_.rivals(sum(16)).front().name;
  const TuningRecord little{.collective = Collective::allreduce,
                            .size_class = 3,
                            .plan = plan,
                            .nanoseconds = 1000,
                            .host_nanoseconds = 1100};
  TuningRecord much = little;
  much.size_class = 5;
  much.host_nanoseconds = 4000;
  Trials early(planner_), late(planner_);
  for (Trials* trials : {&early, &late}) trials->start("4", {little, much});
  ASSERT_EQ(early.find(sum(16), Moment::own).tried->trial.host_nanoseconds(), 4000u);
  EXPECT_EQ(calls_by_host(early, sum(8)), calls_by_host(late, sum(8)));
}

// A rank that lacked memory for a class, and went on, goes the way of the others from then on.
TEST_F(UnplannedClasses, AreWhatTheyWereBeforeMemoryWasShort) {
  const auto asked = [&](std::size_t bytes, Moment moment) {
    int left = 0;
    for (bool short_of_memory = true; short_of_memory; ++left) {
      Planner planner(Hierarchy::nodes_of(shape_), 0, {});
      Trials trials(planner);
      trials.start("4", {});
      try {
        const ScarceMemory scarce(left);
        static_cast<void>(trials.find(sum(bytes), moment));
        short_of_memory = false;
      } catch (const std::bad_alloc&) {
      }
      const Trials::Found found = trials.find(sum(bytes), Moment::in_order);
      ASSERT_NE(found.tried, nullptr) << "allocations before it failed: " << left;
      EXPECT_EQ(found.tried->trial.planned(), bytes == size) << left;
    }
    EXPECT_GT(left, 2);
  };
  for (const std::size_t bytes : {std::size_t{8}, size})
    for (const Moment moment : {Moment::own, Moment::in_order}) asked(bytes, moment);
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
