// A rewriting run part by part: whatever order the parts' own order leaves, the whole is proven.
#include "plan/motif/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "plan/lower/proof.h"
#include "plan/motif/rewrite.h"

namespace plait::plan::motif {
namespace {

Rewriting rewritten(Collective collective, int ranks, const std::string& rules) {
  const Result<Rewriting> whole = whole_collective(collective, ranks, 0);
  const Result<std::vector<Rule>> parsed = parse_rules(rules);
  EXPECT_TRUE(whole.ok() && parsed.ok());
  Result<Rewriting> result = rewrite(*whole, *parsed);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

PartedPlan parted(Collective collective, const std::vector<int>& on_nodes, const std::string& rules) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(on_nodes);
  Result<PartedPlan> plan = lower_in_parts(rewritten(collective, hierarchy.ranks(), rules), {}, collective, hierarchy,
                                           usual_routes(hierarchy));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(*plan);
}

// One that keeps to what must be before what, the last part included.
std::vector<int> random_order(const PartedPlan& plan, std::mt19937_64& random) {
  std::vector<int> order, left;
  for (int part = 0; part <= plan.parts; ++part) left.push_back(part);
  while (!left.empty()) {
    std::vector<int> free;
    for (const int part : left)
      if (std::ranges::all_of(plan.after[static_cast<std::size_t>(part)],
                              [&](int before) { return std::ranges::find(order, before) != order.end(); }))
        free.push_back(part);
    if (free.empty()) return {};
    order.push_back(free[random() % free.size()]);
    std::erase(left, order.back());
  }
  return order;
}

// What a rank that runs one part after the other does, as one schedule.
Schedule one_by_one(const Schedule& schedule, const std::vector<int>& order) {
  Schedule all = schedule;
  all.steps.clear();
  all.after.clear();
  all.parts.clear();
  for (const int number : order) {
    const Schedule part = steps_of_part(schedule, number);
    const auto base = static_cast<std::uint32_t>(all.steps.size());
    for (Step step : part.steps) {
      const RunList own = step.after;
      step.after.first = static_cast<std::uint32_t>(all.after.size());
      for (std::uint32_t before = 0; before < base; ++before) all.after.push_back(before);
      for (std::uint32_t i = own.first; i < own.first + own.count; ++i) all.after.push_back(base + part.after[i]);
      step.after.count = static_cast<std::uint32_t>(all.after.size()) - step.after.first;
      all.steps.push_back(step);
    }
  }
  return all;
}

TEST(MotifParts, AnyOrderThatTheyLeaveIsProven) {
  struct Case {
    Collective collective;
    const char* rules;
  };
  const Case cases[] = {{Collective::allreduce, "segment:4"},
                        {Collective::allreduce, "segment:2,ring"},
                        {Collective::allreduce, "tree:2"},
                        {Collective::allreduce, "segment:2,tree:4,ring"},
                        {Collective::alltoall, "segment:2"},
                        {Collective::alltoall, "spline:4"},
                        {Collective::alltoall, "spline:2,segment:2"},
                        {Collective::bcast, "segment:2,ring"},
                        {Collective::reduce, "spline:2"},
                        {Collective::allgather, "spline:4"},
                        {Collective::reduce_scatter_block, "segment:2,spline:2"},
                        {Collective::gather, "spline:2"},
                        {Collective::scatter, "segment:4"}};
  const std::uint64_t seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.rules);
    const PartedPlan plan = parted(one.collective, {2, 2, 2, 2}, one.rules);
    for (int round = 0; round < 8; ++round) {
      const std::vector<int> order = random_order(plan, random);
      ASSERT_EQ(order.size(), static_cast<std::size_t>(plan.parts) + 1) << "parts wait for one another";
      std::vector<Schedule> schedules;
      for (const Schedule& schedule : plan.plan.schedules) schedules.push_back(one_by_one(schedule, order));
      const Status proven = prove(plan.plan.semantics, schedules, true);
      EXPECT_TRUE(proven.ok()) << proven.message();
    }
  }
}

// A reduce-scatter's result is what the all-gather gives: without that order the proof refuses.
TEST(MotifParts, TheirOrderIsNeeded) {
  const PartedPlan plan = parted(Collective::allreduce, {2, 2}, "ring");
  ASSERT_EQ(plan.parts, 2);
  EXPECT_EQ(plan.after[1], std::vector<int>{0});
  std::vector<Schedule> schedules;
  for (const Schedule& schedule : plan.plan.schedules) schedules.push_back(one_by_one(schedule, {1, 0, 2}));
  EXPECT_FALSE(prove(plan.plan.semantics, schedules, true).ok());
}

TEST(MotifParts, AreThoseOfTheComposition) {
  const Rewriting tree = rewritten(Collective::allreduce, 8, "tree:2");
  const std::vector<Part> parts = parts_of(tree.term);
  ASSERT_EQ(parts.size(), 3u);  // reduces beside each other, the smaller all-reduce, broadcasts
  EXPECT_EQ(parts[0].motifs.size(), 4u);
  EXPECT_EQ(parts[2].after, std::vector<int>{1});
}

}  // namespace
}  // namespace plait::plan::motif
