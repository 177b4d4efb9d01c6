// The joint search: known optima, the bound, limits, and that it gives the same again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "plan/joint/baselines.h"
#include "plan/joint/list_schedule.h"
#include "tests/plan/joint/brute_force.h"
#include "tests/plan/joint/joint_graphs.h"
#include "tests/plan/joint/small_steps.h"

namespace plait::plan::joint {
namespace {

JointSearchOptions limited(long schedules, std::uint64_t seed = 1, int chains = 1) {
  return {.seed = seed, .chains = chains, .seconds = 0, .schedules = schedules};
}

// A slower all-to-all beside the all-reduces is worth more than a fast one before or behind them.
TEST(JointSearch, OverlapsAsFigure6) {
  const Baselines all = baselines(figure_6(), limited(2000));
  EXPECT_NEAR(all.as_issued, 11, 1e-9);
  EXPECT_NEAR(all.schedule_only.seconds, 11, 1e-9);
  EXPECT_NEAR(all.execution_only.seconds, 8, 1e-9);
  EXPECT_NEAR(all.joint.seconds, 8, 1e-9);
  EXPECT_EQ(all.joint.options, (std::vector<int>{0, 0, 0, 0, 1, 0}));
  ASSERT_EQ(all.joint.channel_order.size(), 2u);
  EXPECT_EQ(all.joint.channel_order[0].size(), 3u);
  EXPECT_EQ(all.joint.channel_order[1].size(), 1u);
}

TEST(JointSearch, SegmentsAndOrderTogether) {
  const Baselines all = baselines(two_layers(), limited(2000));
  EXPECT_NEAR(all.as_issued, 7, 1e-9);
  EXPECT_NEAR(all.lifo, 6, 1e-9);
  EXPECT_NEAR(all.schedule_only.seconds, 7, 1e-9);
  EXPECT_NEAR(all.schedule_and_segments, 6, 1e-9);
  EXPECT_NEAR(all.execution_only.seconds, 7, 1e-9);
  EXPECT_NEAR(all.joint.seconds, 6, 1e-9);
}

// What the plan says is what following its order takes.
TEST(JointSearch, PredictsWhatItsOrderTakes) {
  for (int seed = 1; seed <= 20; ++seed) {
    const StepGraph step = random_graph({.kind = graph_kinds[seed % 5],
                                         .operations = 12,
                                         .contended = seed % 2 == 0,
                                         .seed = static_cast<std::uint64_t>(seed)});
    const JointPlan plan = joint_search(step, limited(5000));
    const StepTables tables(step);
    const Schedule followed = ListScheduler(tables).schedule(plan.options, plan.order);
    EXPECT_NEAR(followed.seconds, plan.seconds, 1e-9 * plan.seconds);
    EXPECT_GE(plan.seconds, plan.bound.seconds() * (1 - 1e-9));
    EXPECT_LE(plan.seconds, plan.greedy_seconds);
  }
}

// An order can be told from any of its pieces on: what goes to the end of the period is one iteration ahead then.
TEST(JointSearch, OrdersMeanTheSameFromAnyPieceOn) {
  for (int seed = 1; seed <= 20; ++seed) {
    const StepGraph step = random_graph({.kind = graph_kinds[seed % 5],
                                         .operations = 10,
                                         .communication = 0.5 * (1 + seed % 4),
                                         .seed = static_cast<std::uint64_t>(seed)});
    const JointPlan plan = joint_search(step, limited(1000));
    const StepTables tables(step);
    ListScheduler scheduler(tables);
    std::vector<OrderedPiece> order = plan.order;
    for (std::size_t turn = 0; turn < order.size(); ++turn) {
      ++order[0].ahead;
      std::rotate(order.begin(), order.begin() + 1, order.end());
      if (turn % 3 != 0) continue;
      EXPECT_NEAR(scheduler.schedule(plan.options, order).seconds, plan.seconds, 1e-9 * plan.seconds)
          << "seed " << seed;
    }
  }
}

// bound <= optimum <= found, and found is nearly always the optimum.
TEST(JointSearch, FindsTheOptimumOfSmallSteps) {
  std::mt19937_64 random(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  int steps = 0, optimal = 0;
  while (steps < 40) {
    GraphRequest request{.kind = graph_kinds[random() % 5], .operations = 2 + static_cast<int>(random() % 4)};
    request.communication = 0.5 * static_cast<double>(1 + random() % 6);
    request.contended = random() % 3 == 0;
    request.most_options = request.operations < 4 ? 4 : 2;
    request.most_pieces = request.operations < 3 ? 3 : 2;
    request.seed = random();
    const StepGraph step = random_graph(request);
    if (brute_force_schedules(step) > 4e4) continue;
    ++steps;
    const BruteForce best = brute_force(step);
    const JointPlan plan = joint_search(step, limited(20000));
    EXPECT_LE(plan.bound.seconds(), best.seconds * (1 + 1e-9)) << name(request.kind) << ", seed " << request.seed;
    EXPECT_GE(plan.seconds, best.seconds * (1 - 1e-6)) << name(request.kind) << ", seed " << request.seed;
    if (plan.seconds <= best.seconds * (1 + 1e-6)) ++optimal;
  }
  EXPECT_GE(optimal, 38);
}

// Of larger steps all that is known is what a plan takes.
TEST(JointSearch, BoundIsBelowEverySchedule) {
  std::mt19937_64 random(static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  for (int i = 0; i < 100; ++i) {
    GraphRequest request{.kind = graph_kinds[random() % 5], .operations = 1 + static_cast<int>(random() % 40)};
    request.channels = 1 + static_cast<int>(random() % 3);
    request.communication = 0.25 * static_cast<double>(1 + random() % 12);
    request.contended = random() % 2 == 0;
    request.seed = random();
    const StepGraph step = random_graph(request);
    const double bound = lower_bound(step).seconds();
    const JointPlan plan = joint_search(step, limited(400));
    EXPECT_GE(plan.seconds, bound * (1 - 1e-9)) << name(request.kind) << ", seed " << request.seed;
    const JointPlan serial = joint_search(step, {.order = OrderFreedom::as_issued, .seconds = 0, .schedules = 200});
    EXPECT_GE(serial.seconds, bound * (1 - 1e-9)) << name(request.kind) << ", seed " << request.seed;
  }
}

TEST(JointSearch, IsTheSameForASeed) {
  const StepGraph step = random_graph({.kind = GraphKind::random, .operations = 40, .communication = 2});
  for (const int chains : {1, 3}) {
    const JointPlan one = joint_search(step, limited(3000, 7, chains)),
                    two = joint_search(step, limited(3000, 7, chains));
    EXPECT_EQ(one.options, two.options);
    EXPECT_EQ(one.order, two.order);
    EXPECT_EQ(one.seconds, two.seconds);
    EXPECT_EQ(one.schedules, two.schedules);
    EXPECT_LE(one.schedules, 3000 + 10 * chains);
  }
}

// A clock that goes on by a millisecond whenever it is asked.
JointSearchOptions ticking(std::atomic<int>& ticks, double seconds) {
  return {.seconds = seconds, .clock = [&ticks] { return 1e-3 * ++ticks; }};
}

TEST(JointSearch, EndsWithItsTime) {
  const StepGraph step = random_graph({.kind = GraphKind::random, .operations = 100, .communication = 2});
  std::atomic<int> ticks = 0;
  const JointPlan plan = joint_search(step, ticking(ticks, 0.5));
  EXPECT_LE(plan.spent, 0.51);
  EXPECT_GE(plan.spent, 0.05);
}

// More than half of the time without anything better, and a tenth of the budget: six operations are soon done.
TEST(JointSearch, EndsWhenHalfOfTheTimeBroughtNothing) {
  const StepGraph step =
      random_graph({.kind = GraphKind::random, .operations = 6, .communication = 2, .contended = true});
  std::atomic<int> ticks = 0;
  const JointPlan plan = joint_search(step, ticking(ticks, 1000));
  EXPECT_LE(plan.spent, 500);
  EXPECT_GE(plan.spent, 100);
}

// Nothing is better than the bound.
TEST(JointSearch, EndsAtTheBound) {
  StepGraph step = exclusive_step(1);
  step.tasks = {computation(3), operation({on(0, 1)}, {0}), operation({on(0, 1), on(0, 2)}, {0})};
  const JointPlan plan = joint_search(step, limited(100000));
  EXPECT_NEAR(plan.seconds, 3, 1e-9);
  EXPECT_LE(plan.schedules, 20);
}

}  // namespace
}  // namespace plait::plan::joint
