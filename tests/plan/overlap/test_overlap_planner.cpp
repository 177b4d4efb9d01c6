// Baselines, the exact schedule, what plans cost, and all of them side by side.
#include <gtest/gtest.h>

#include <random>

#include "plan/overlap/baselines.h"
#include "plan/overlap/overlap_planner.h"
#include "plan/overlap/plan_reductions.h"
#include "tests/plan/overlap/overlap_problems.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

// One second of computation a call; communication of c bytes takes 1 + c/10 s beside it and 0.5 + c/10 s alone.
OverlapModel simple_model() {
  return {.shares = {{1, 1}},
          .slowdown = {2},
          .overlapped = [](double bytes, std::size_t) { return 1 + bytes / 10; },
          .alone = [](double bytes, std::size_t) { return 0.5 + bytes / 10; }};
}

std::vector<std::size_t> sizes(const std::vector<OverlapGroup>& groups) {
  std::vector<std::size_t> counts;
  for (const OverlapGroup& group : groups) counts.push_back(group.calls);
  return counts;
}

TEST(OverlapStage, IsThePapers) {
  const OverlapModel model = simple_model();
  // Computation ends first: g = 2, p = 3; a third of communication is left, of 2.5 s alone.
  const OverlapStage exposed = overlap_stage(model, 20, 1, 0);
  EXPECT_DOUBLE_EQ(exposed.overlapped, 2);
  EXPECT_DOUBLE_EQ(exposed.computation, 0);
  EXPECT_DOUBLE_EQ(exposed.communication, 2.5 / 3);
  // Communication ends first: g = 10, p = 3; 0.7 of 5 s of computation is left.
  const OverlapStage hidden = overlap_stage(model, 20, 5, 0);
  EXPECT_DOUBLE_EQ(hidden.overlapped, 3);
  EXPECT_DOUBLE_EQ(hidden.computation, 3.5);
  EXPECT_DOUBLE_EQ(hidden.communication, 0);
  EXPECT_DOUBLE_EQ(overlap_stage(model, 20, 0, 0).seconds(), 2.5);
  EXPECT_DOUBLE_EQ(overlap_stage(model, 0, 3, 0).seconds(), 3);
}

TEST(BackwardTime, CountsAnAgreementBeforeAGroupOfSeveralCalls) {
  OverlapModel model = simple_model();
  const BackwardPass pass{.computation = {1, 4}, .bytes = {20, 10}, .tail = 0};
  const std::vector<OverlapGroup> one = {{0, 2, {1, 1}}}, each = {{0, 1, {1, 1}}, {1, 1, {1, 1}}};
  const double fused_before = backward_time(pass, one, model).seconds,
               each_before = backward_time(pass, each, model).seconds;
  model.agreement = 0.25;
  EXPECT_DOUBLE_EQ(backward_time(pass, one, model).seconds, fused_before + 0.25);
  EXPECT_DOUBLE_EQ(backward_time(pass, each, model).seconds, each_before);
  // Calls that were fused before are a group of several, too.
  EXPECT_DOUBLE_EQ(backward_time(fused(pass, one), {{0, 1, {1, 1}}}, model).seconds, fused_before + 0.25);
}

TEST(BackwardTime, IsTheScheduleByHand) {
  const OverlapModel model = simple_model();
  const BackwardPass pass{.computation = {1, 4}, .bytes = {20, 10}, .tail = 0};
  // 1 s; 3 s beside which 1.5 s' worth is computed; 2.5 s more; then 1.5 s alone.
  const BackwardTime time = backward_time(pass, {{0, 1, {1, 1}}, {1, 1, {1, 1}}}, model);
  EXPECT_DOUBLE_EQ(time.seconds, 8);
  EXPECT_DOUBLE_EQ(time.computation, 6.5);
  EXPECT_DOUBLE_EQ(time.exposed, 1.5);
  EXPECT_DOUBLE_EQ(time.groups[0].begin, 1);
  EXPECT_DOUBLE_EQ(time.groups[0].end, 4);
  EXPECT_DOUBLE_EQ(time.groups[1].begin, 6.5);
}

TEST(BackwardTime, TailIsComputedBesideTheLastGroup) {
  const BackwardPass pass{.computation = {1}, .bytes = {20}, .tail = 10};
  EXPECT_DOUBLE_EQ(backward_time(pass, {{0, 1, {1, 1}}}, simple_model()).seconds, 1 + 3 + 8.5);
}

TEST(Baselines, GroupAsTheirPapersSay) {
  const BackwardPass pass{.computation = {1, 1, 1, 1, 5, 1}, .bytes = {10, 10, 15, 30, 5, 1}, .tail = 0};
  const CommunicationShare share{1, 1};
  EXPECT_EQ(sizes(one_group_a_call(pass, share)), (std::vector<std::size_t>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(sizes(one_group(pass, share)), (std::vector<std::size_t>{6}));
  EXPECT_EQ(sizes(buckets(pass, 25, share)), (std::vector<std::size_t>{3, 1, 2})) << "10 + 10 + 15, 30, 5 + 1";
  EXPECT_EQ(sizes(merged_gradients(pass, simple_model(), share, 0)), (std::vector<std::size_t>{1, 1, 1, 1, 1, 1}));
  // Gradients exist at 1, 2, 3, 4, 9 and 10 s. Of the first four each comes less than 1.5 s after the one before; the
  // reduction that begins at 4 s ends at 11 s, so that the last two need not be apart.
  EXPECT_EQ(sizes(merged_gradients(pass, simple_model(), share, 1.5)), (std::vector<std::size_t>{4, 2}));
  EXPECT_EQ(sizes(merged_gradients(pass, simple_model(), share, 100)), (std::vector<std::size_t>{6}));
  EXPECT_DOUBLE_EQ(reduction_at_end(pass, simple_model(), share).seconds, 10 + 0.5 + 7.1);
}

TEST(Comparison, PlanIsNeverSlowerThanABaseline) {
  std::mt19937_64 random(99);
  double sum = 0;
  for (int number = 0; number < 60; ++number) {
    const OverlapProblem problem = random_problem(random, 5 + random() % 30, 3);
    const OverlapComparison comparison =
        compare_overlap(problem.pass, problem.model, {.groups = 10, .chunks = 60}, problem.model.alone(1, 0));
    ASSERT_EQ(comparison.baselines.size(), 8u);
    for (const OverlapSolution& baseline : comparison.baselines)
      EXPECT_LE(comparison.best().time.seconds, baseline.time.seconds * (1 + 1e-12)) << baseline.method;
    // The dynamic program itself is within its bound of any of them that has so few groups.
    for (const OverlapSolution& variant : comparison.variants) {
      if (variant.groups.size() <= 10) {
        EXPECT_LE(comparison.libra.time.seconds, variant.time.seconds * comparison.guarantee) << variant.method;
      }
    }
    sum += comparison.best_baseline().time.seconds / comparison.best().time.seconds;
  }
  EXPECT_GT(sum / 60, 1.0);
}

// Gradients that stand for larger ones: buckets of as many layers as those would have, not one of all.
TEST(Comparison, BucketsAreScaledAsTheGradientsAre) {
  std::mt19937_64 random(7);
  const OverlapModel model = random_problem(random, 8, 3).model;
  LayerTable table{.model = "net", .layers = {}};
  for (int layer = 0; layer < 12; ++layer) table.layers.push_back({"layer", 10'000'000, 0.01});
  const auto bucket_sizes = [&](const LayerTable& layers) {
    for (const OverlapSolution& baseline : compare_overlap(backward_pass(layers), model, {}, 0).baselines)
      if (baseline.method == "25 MB buckets") return sizes(baseline.groups);
    return std::vector<std::size_t>{};
  };
  EXPECT_EQ(bucket_sizes(table), (std::vector<std::size_t>{3, 3, 3, 3}));
  for (const double factor : {0.5, 0.034, 1e-4}) EXPECT_EQ(bucket_sizes(scaled(table, 1, factor)), bucket_sizes(table));
  EXPECT_EQ(bucket_sizes(scaled(scaled(table, 1, 0.1), 2, 0.3)), bucket_sizes(table));
}

TEST(Comparison, GivenGroupsAreKept) {
  std::mt19937_64 random(5);
  const OverlapProblem problem = random_problem(random, 8, 3);
  const std::vector<OverlapGroup> given = {{0, 3, {}}, {3, 4, {}}, {7, 1, {}}};
  const OverlapComparison comparison = compare_overlap(problem.pass, problem.model, {}, 0, given);
  EXPECT_EQ(sizes(comparison.best().groups), (std::vector<std::size_t>{3, 4, 1}));
}

TEST(PlanReductions, CountTheBytesOfTheNetwork) {
  const auto shape = parse_shape("4x2");
  ASSERT_TRUE(shape.ok());
  const Machine machine = default_machine();
  const auto reductions =
      plan_reductions(reduction_sizes(std::size_t{64} << 20), {.hierarchy = shape->hierarchy, .machine = machine});
  ASSERT_TRUE(reductions.ok()) << reductions.status().message();
  for (const ReductionCost& reduction : *reductions) {
    EXPECT_GT(reduction.startup, 0) << reduction.plan;
    EXPECT_GE(reduction.moved, 1.49 * static_cast<double>(reduction.bytes))
        << "2 (n - 1)/n at least: " << reduction.plan;
  }
  EXPECT_NEAR(reductions->back().moved, 1.5 * (64 << 20), 1.5 * (64 << 20) * 0.2) << reductions->back().plan;
  EXPECT_GT(reductions->front().moved, 0);
}

TEST(PlanReductions, OneNodeCountsItsProcessors) {
  const auto shape = parse_shape("1x4");
  const auto reductions = plan_reductions({1 << 20}, {.hierarchy = shape->hierarchy, .machine = default_machine()});
  ASSERT_TRUE(reductions.ok()) << reductions.status().message();
  EXPECT_GT(reductions->front().moved, 1 << 20);
}

}  // namespace
}  // namespace plait::plan
