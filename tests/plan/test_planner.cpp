// What the planner chooses on given machines (golden tables), and that its cache and forced plans work.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/choose/planner.h"
#include "plan/choose/sweep.h"
#include "plan/motif/parts.h"

namespace plait::plan {
namespace {

std::string chosen(Planner& planner, Collective collective, std::size_t bytes, int root = 0) {
  Call call{.collective = collective, .root = root, .count = bytes / 4, .element_bytes = 4};
  if (collective == Collective::barrier) call = {.collective = collective, .count = 0, .element_bytes = 0};
  const Choice choice = planner.choose(call);
  return choice.plan == nullptr ? std::string(choice.reason) : choice.plan->name;
}

TEST(Planner, EveryRankChoosesTheSame) {
  const std::vector<int> shape = {3, 2, 1};
  const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::allgatherv || collective == Collective::reduce_scatter) continue;
    for (const std::size_t bytes : {8, 1024, 65536, 1 << 20}) {
      Planner first(hierarchy, 0, {});
      const std::string name = chosen(first, collective, bytes);
      EXPECT_FALSE(name.empty());
      for (int rank = 1; rank < hierarchy.ranks(); ++rank) {
        Planner planner(hierarchy, rank, {});
        EXPECT_EQ(chosen(planner, collective, bytes), name);
      }
    }
  }
}

TEST(Planner, TheSecondLookUpGivesTheSameObject) {
  const std::vector<int> shape = {2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 1, {});
  const Call call{.collective = Collective::allreduce, .count = 2, .element_bytes = 4};
  EXPECT_EQ(planner.choose(call).plan, planner.choose(call).plan);
}

// A communicator that begins with another size of a class must not choose otherwise: results would differ in their bits
// between communicators of the same ranks.
TEST(Planner, TheChoiceOfAClassDoesNotDependOnItsFirstCall) {
  const std::vector<int> shape = {3, 2, 1};
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::barrier || collective == Collective::allgatherv ||
        collective == Collective::reduce_scatter)
      continue;
    for (std::size_t bytes = 1024; bytes <= 1 << 22; bytes *= 4) {
      Planner one(Hierarchy::nodes_of(shape), 0, {}), other(Hierarchy::nodes_of(shape), 0, {});
      chosen(other, collective, bytes * 2 - 4, 5);
      EXPECT_EQ(chosen(one, collective, bytes), chosen(other, collective, bytes)) << name(collective) << " " << bytes;
    }
  }
}

TEST(Planner, NamesThePlansThatATrialMayTake) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 1, {});
  const Call call{.collective = Collective::bcast, .root = 3, .count = 1000, .element_bytes = 4};
  const std::vector<Rival> rivals = planner.rivals(call);
  ASSERT_GE(rivals.size(), 2u);
  EXPECT_EQ(rivals.front().name, chosen(planner, Collective::bcast, 4000));
  EXPECT_GT(rivals.front().seconds, 0);
  for (const auto& [rival, seconds] : rivals) {
    EXPECT_EQ(std::ranges::count(rivals, rival, &Rival::name), 1) << rival;
    EXPECT_GT(seconds, 0) << rival;
    ASSERT_NE(planner.choose(call, rival).plan, nullptr);
    EXPECT_EQ(planner.choose(call, rival).plan->name, rival);
    EXPECT_EQ(planner.choose(call, rival).plan->semantics.root(), 3);
  }
  EXPECT_EQ(planner.choose(call, "nonsense").plan, planner.choose(call).plan);
  planner.force("SC.1 AG.1");
  EXPECT_TRUE(planner.rivals(call).empty());
}

// What the ports must carry, and no plan can do without.
TEST(Planner, KnowsWhatThePortsLeaveACall) {
  const std::vector<int> one = {4}, shape = {2, 2, 2, 2};
  PlannerOptions options;
  options.machine.levels.front().port_seconds_per_byte = 1e-9;
  options.siblings = 8;  // others that may be idle
  Planner within(Hierarchy::nodes_of(one), 0, options), between(Hierarchy::nodes_of(shape), 0, options);
  const Call sum{.collective = Collective::allreduce, .count = 1'000'000, .element_bytes = 4};
  const Call all{.collective = Collective::allgather, .count = 1'000'000, .element_bytes = 4};
  EXPECT_EQ(within.least_seconds(sum), 0);
  const double shortest = 1 << 21;  // of the class
  EXPECT_NEAR(between.least_seconds(sum), 2 * 0.75 * shortest * 1e-9, 1e-9);
  EXPECT_NEAR(between.least_seconds(all), 6 * shortest * 1e-9, 1e-9);
  EXPECT_EQ(between.least_seconds({.collective = Collective::barrier, .count = 0, .element_bytes = 0}), 0);
}

// A class has calls with any root, and lists of lengths of which the ports may carry hardly anything.
TEST(Planner, KnowsWhatThePortsLeaveAnyCallOfAClass) {
  const std::vector<int> shape = {1, 5};
  PlannerOptions options;
  options.machine.levels.front().port_seconds_per_byte = 1e-9;
  Planner planner(Hierarchy::nodes_of(shape), 0, options);
  const Call gather{.collective = Collective::gather, .count = 1 << 20, .element_bytes = 1};
  EXPECT_NEAR(planner.least_seconds(gather), (1 << 20) * 1e-9, 1e-12) << "a root on the node of five";
  const std::vector<std::size_t> counts = {0, 1 << 20, 0, 0, 0, 0};
  const Call lists{.collective = Collective::allgatherv, .counts = counts.data(), .element_bytes = 1};
  EXPECT_EQ(planner.least_seconds(lists), 0);
}

PlannerOptions forcing(std::string plan) {
  PlannerOptions options;
  options.forced_plan = std::move(plan);
  options.warns = false;
  return options;
}

TEST(Planner, AForcedPlanIsTakenWhereItApplies) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, forcing("RS.2(ring) AR.1(ring) AG.2(ring) x4"));
  EXPECT_EQ(chosen(planner, Collective::allreduce, 8), "RS.2(ring) AR.1(ring) AG.2(ring) x4");
  EXPECT_EQ(chosen(planner, Collective::bcast, 8).find("ring"), std::string::npos);
}

TEST(Planner, AProgramWithoutAlgorithmsGetsTheBestOnes) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, forcing("RS.2 AR.1 AG.2"));
  EXPECT_EQ(chosen(planner, Collective::allreduce, 8), "RS.2(shared) AR.1(rd) AG.2(shared)");
  EXPECT_NE(chosen(planner, Collective::allreduce, 16 << 20).find("AG.2(shared) x"), std::string::npos);
}

TEST(Planner, APlanFileIsTakenOnItsHierarchyOnly) {
  const std::string file =
      R"json({"plait_plan":1,"collective":"allreduce","hierarchy":[4,2],"program":"AR.2(ring) AR.1(rd)","chunks":2})json";
  Planner fitting(Hierarchy::nodes_of(std::vector<int>{2, 2, 2, 2}), 0, forcing(file));
  EXPECT_EQ(chosen(fitting, Collective::allreduce, 4096), "AR.2(ring) AR.1(rd) x2");
  Planner other(Hierarchy::nodes_of(std::vector<int>{2, 2}), 0, forcing(file));
  EXPECT_NE(chosen(other, Collective::allreduce, 4096), "AR.2(ring) AR.1(rd) x2");
}

// Refused with the first rule that it violates, where that shows.
TEST(Planner, MotifsCanBeRunPartByPart) {
  const std::vector<int> shape = {2, 2};
  PlannerOptions options;
  options.rails = 2;
  const Planner planner(Hierarchy::nodes_of(shape), 1, options);
  const Call sum{.collective = Collective::allreduce, .count = 4096, .element_bytes = 4};
  const auto parted = planner.in_parts(sum, "[segment:2,ring] @0,1");
  ASSERT_TRUE(parted.ok()) << parted.status().message();
  EXPECT_EQ(parted->parts, 4);
  EXPECT_EQ(planner.in_parts(sum, "AR.12(ring)").status().code(), Code::unsupported);
  EXPECT_EQ(planner.in_parts(sum, "[segment:2] @0,2").status().code(), Code::invalid);
}

TEST(Planner, AnInvalidPlanIsRefusedWithItsReason) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, {});
  const std::string unforced = chosen(planner, Collective::allreduce, 8);
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"RS.2 AR.12 AG.2", {"AR.12", "rank", "chunk"}},
      {"RS.2 AG.2", {"rank", "chunk", "contribution"}},
      {"AR.3", {"level 3 of 2"}},
      {"AR.1(fast)", {"AR.1(fast)", "algorithm"}},
      {"nonsense", {"nonsense", "expected"}},
      {R"({"plait_plan":1})", {"collective"}},
      {R"({"plait_plan":1,"collective":"alltoall","hierarchy":[4,2],"program":"AR.12"})", {"alltoall"}},
      {R"({"plait_plan":1,"collective":"allreduce","hierarchy":[4,2],"program":"RS.2 AG.2"})", {"rank", "chunk"}},
      {R"({"plait_plan":1,"collective":"allreduce","hierarchy":[2,4],"program":"AR.12"})", {"[2 4]"}},
      {"{", {"not JSON"}},
  };
  for (const auto& [plan, parts] : cases) {
    const Status status = planner.check(plan);
    EXPECT_FALSE(status.ok()) << plan;
    for (const char* part : parts)
      EXPECT_NE(status.message().find(part), std::string::npos) << plan << ": " << status.message();
    EXPECT_EQ(chosen(planner, Collective::allreduce, 8), unforced);
  }
}

TEST(Planner, SmallMessagesGoThroughLeadersWhereRanksShareCores) {
  const std::vector<int> shape = {2, 2, 2, 2};
  PlannerOptions options;
  options.machine.ranks_per_core = 4;
  Planner planner(Hierarchy::nodes_of(shape), 0, options);
  EXPECT_EQ(chosen(planner, Collective::allreduce, 8), "RD.2(shared) AR.1(rd) BC.2(shared)");
  EXPECT_EQ(chosen(planner, Collective::barrier, 0), "RD.2(shared) AR.1(rd) BC.2(shared)");
}

TEST(Planner, LargeMessagesArePipelined) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, {});
  for (const Collective collective : {Collective::allreduce, Collective::bcast, Collective::reduce})
    EXPECT_NE(chosen(planner, collective, 4 << 20).find(" x"), std::string::npos)
        << chosen(planner, collective, 4 << 20);
}

TEST(Planner, CommunicatorsOfOneShapeShareTheirPlans) {
  const std::vector<int> shape = {2, 2}, other_shape = {1, 3};
  const Call call{.collective = Collective::allreduce, .count = 4096};
  PlanStore store;
  Planner one(Hierarchy::nodes_of(shape), 1, {}, &store), same(Hierarchy::nodes_of(shape), 1, {}, &store);
  Planner other(Hierarchy::nodes_of(other_shape), 1, {}, &store), alone(Hierarchy::nodes_of(shape), 1, {});
  EXPECT_EQ(one.choose(call).plan, same.choose(call).plan);
  EXPECT_NE(one.choose(call).plan, other.choose(call).plan);
  EXPECT_NE(one.choose(call).plan, alone.choose(call).plan);
  EXPECT_TRUE(same.check("AR.12(ring)").ok());
  same.force("AR.12(ring)");
  EXPECT_EQ(same.choose(call).plan->name.substr(0, 11), "AR.12(ring)");
  EXPECT_NE(one.choose(call).plan->name.substr(0, 11), "AR.12(ring)");
}

// However many communicators live, another one costs a bounded number of looks.
TEST(Planner, AStoreIsSweptSoSeldomThatEachShapeIsLookedAtAFewTimes) {
  Sweep sweep(64);
  std::size_t looks = 0;
  for (std::size_t entries = 0; entries < 100'000; ++entries) {
    if (!sweep.is_due(entries)) continue;
    looks += entries;
    sweep.done(entries);  // all are in use
  }
  EXPECT_GT(looks, 0u);
  EXPECT_LE(looks, 200'000u);
  sweep.done(0);
  EXPECT_FALSE(sweep.is_due(63));
  EXPECT_TRUE(sweep.is_due(64));
}

// What one communicator of a shape saw before must not decide for another: other ranks may have seen other calls.
TEST(Planner, AStoresHistoryDoesNotDecide) {
  const std::vector<int> shape = {1, 1};
  for (std::size_t first = 1; first <= 1024; first = first * 3 / 2 + 1) {
    PlanStore store;
    Planner before(Hierarchy::nodes_of(shape), 0, {}, &store), after(Hierarchy::nodes_of(shape), 0, {}, &store);
    Planner fresh(Hierarchy::nodes_of(shape), 0, {});
    chosen(before, Collective::reduce_scatter_block, 4 * first);
    for (std::size_t elements = 1; elements <= 1024; ++elements)
      EXPECT_EQ(chosen(after, Collective::reduce_scatter_block, 4 * elements),
                chosen(fresh, Collective::reduce_scatter_block, 4 * elements))
          << first << " " << elements;
  }
}

// Their least common multiple is beyond all bounds: such nodes work through their leaders.
TEST(Planner, NodesOfSizesWithoutACommonFactorHavePlans) {
  for (const std::vector<int>& shape : {std::vector<int>{7, 5, 3}, {31, 29, 23, 17}, {29, 27, 25, 23, 22, 19, 17}}) {
    Planner planner(Hierarchy::nodes_of(shape), 1, {});
    for (const Collective collective : {Collective::allreduce, Collective::bcast, Collective::reduce})
      EXPECT_NE(planner.choose({.collective = collective, .count = std::size_t{4} << 20}).plan, nullptr)
          << name(collective);
  }
}

TEST(Planner, TooManyBlocksAreRefused) {
  Planner planner(Hierarchy::nodes_of(std::vector<int>(64, 4)), 1, {});
  EXPECT_FALSE(planner.check("AR.12(ring) x4096").ok());
}

// A NIC that siblings use as well makes the programs that spare it cheaper.
TEST(Planner, SiblingsShareTheNic) {
  const std::vector<int> shape = {1, 1, 1, 1};
  PlannerOptions alone, crowded;
  crowded.siblings = 16;
  Planner one(Hierarchy::nodes_of(shape), 0, alone), other(Hierarchy::nodes_of(shape), 0, crowded);
  EXPECT_NE(chosen(one, Collective::allreduce, 16 << 10), chosen(other, Collective::allreduce, 16 << 10));
}

}  // namespace
}  // namespace plait::plan
