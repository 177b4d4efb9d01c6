// What the planner chooses on given machines (golden tables), and that its cache and forced plans work.
#include <gtest/gtest.h>

#include "plan/planner.h"

namespace plait {
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
  for (int c = 0; c < collective_count; ++c) {
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
  for (int c = 0; c < collective_count; ++c) {
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

TEST(Planner, AForcedPlanIsTaken) {
  const std::vector<int> shape = {2, 2, 2, 2};
  PlannerOptions options;
  options.forced_plan = "AR.1(ring)";
  Planner planner(Hierarchy::nodes_of(shape), 0, options);
  EXPECT_NE(chosen(planner, Collective::allreduce, 8).find("AR.1(ring)"), std::string::npos);
  EXPECT_EQ(chosen(planner, Collective::bcast, 8).find("ring"), std::string::npos);
}

TEST(Planner, SmallMessagesGoThroughLeadersOnly) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, {});
  EXPECT_EQ(chosen(planner, Collective::allreduce, 8), "node:RD.2(binomial) AR.1(rd) BC.2(binomial)");
  EXPECT_EQ(chosen(planner, Collective::barrier, 0), "node:RD.2(binomial) AR.1(rd) BC.2(binomial)");
}

TEST(Planner, LargeMessagesArePipelined) {
  const std::vector<int> shape = {2, 2, 2, 2};
  Planner planner(Hierarchy::nodes_of(shape), 0, {});
  for (const Collective collective : {Collective::allreduce, Collective::bcast, Collective::reduce})
    EXPECT_NE(chosen(planner, collective, 4 << 20).find(" x"), std::string::npos) << chosen(planner, collective, 4 << 20);
}

}  // namespace
}  // namespace plait
