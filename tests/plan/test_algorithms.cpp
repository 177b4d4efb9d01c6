// What holds of every algorithm in the registry: what it says of itself is so.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/algorithm/exchange.h"
#include "plan/algorithm/registry.h"
#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"

namespace plait::plan {
namespace {

constexpr int most_members = 40;

Collective collective_of(Instruct what) {
  constexpr std::array collectives = {Collective::allreduce, Collective::reduce_scatter_block,
                                      Collective::allgather, Collective::reduce,
                                      Collective::bcast,     Collective::gather,
                                      Collective::scatter};
  return collectives[static_cast<std::size_t>(what)];
}

// One group of so many members: a node each, or all of one.
LoweredPlan plan_of(const Algorithm& algorithm, Instruct what, int members) {
  const std::vector<int> shape = {members};
  const Hierarchy hierarchy = algorithm.needs_whole_node ? Hierarchy::nodes_of(shape) : Hierarchy::uniform_of(shape);
  const Candidate candidate{.name = "test", .program = {{{what, 0, 0, &algorithm}}}, .chunks = 2};
  auto plan = lower(candidate, collective_of(what), 0, true, hierarchy);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

template <class Visit>
void for_each_fit(const Algorithm& algorithm, Visit visit) {
  for (int kind = 0; kind < all_instructs; ++kind)
    for (int members = 2; members <= most_members; ++members)
      if (const auto what = static_cast<Instruct>(kind); algorithm.fits(what, members)) visit(what, members);
}

TEST(Algorithms, AreProvenWhereTheyFit) {
  for (const Algorithm* algorithm : all_algorithms)
    for_each_fit(*algorithm, [&](Instruct what, int members) {
      const LoweredPlan plan = plan_of(*algorithm, what, members);
      const Status status = prove(plan.semantics, plan.schedules, true);
      EXPECT_TRUE(status.ok()) << name(what) << " " << algorithm->name << " of " << members << ": " << status.message();
    });
}

TEST(Algorithms, KeepTheOrderOfOperandsWhereTheySaySo) {
  for (const Algorithm* algorithm : all_algorithms)
    for_each_fit(*algorithm, [&](Instruct what, int members) {
      if (!algorithm->keeps_order || !reduces(what)) return;
      const LoweredPlan plan = plan_of(*algorithm, what, members);
      const Status status = prove(plan.semantics, plan.schedules, false);
      EXPECT_TRUE(status.ok()) << name(what) << " " << algorithm->name << " of " << members << ": " << status.message();
    });
}

TEST(Algorithms, AreRefusedWhereTheyDoNotFit) {
  for (const Algorithm* algorithm : all_algorithms)
    for (int kind = 0; kind < all_instructs; ++kind) {
      const auto what = static_cast<Instruct>(kind);
      if (algorithm->fits(what, 7) || algorithm->needs_whole_node) continue;
      const Candidate candidate{.name = "test", .program = {{{what, 0, 0, algorithm}}}};
      const auto plan = lower(candidate, collective_of(what), 0, true, Hierarchy::uniform_of(std::vector<int>{7}));
      ASSERT_FALSE(plan.ok()) << name(what) << " " << algorithm->name;
      EXPECT_NE(plan.status().message().find("cannot be done by '" + std::string(algorithm->name) + "'"),
                std::string::npos)
          << plan.status().message();
    }
}

TEST(Algorithms, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const Algorithm* algorithm : all_algorithms) {
    EXPECT_TRUE(names.insert(algorithm->name).second) << algorithm->name;
    EXPECT_EQ(algorithm_named(algorithm->name), algorithm);
  }
  EXPECT_EQ(algorithm_named("fast"), nullptr);
  for (const Exchange* exchange : all_exchanges)
    EXPECT_EQ(std::count_if(all_exchanges.begin(), all_exchanges.end(),
                            [&](const Exchange* other) { return other->name == exchange->name; }),
              1);
}

// Before a plan is priced an instruction needs some algorithm, whatever the groups.
TEST(Algorithms, TheDefaultFitsGroupsOfAnySize) {
  for (int kind = 0; kind < all_instructs; ++kind)
    for (int members = 2; members <= most_members; ++members)
      EXPECT_TRUE(default_algorithm(static_cast<Instruct>(kind))->fits(static_cast<Instruct>(kind), members));
}

// Those that have the data already take part as well: what is named is what runs.
TEST(Algorithms, ABroadcastOfANodeIsOneWhereSomeHaveTheData) {
  const Hierarchy hierarchy = Hierarchy::uniform_of(std::vector<int>{2, 2, 2});
  const Candidate candidate{.name = "test", .program = *parse_program("AR.3 RD.2 AR.1 BC.23(shared)"), .chunks = 2};
  const auto plan = lower(candidate, Collective::allreduce, 0, true, hierarchy);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(prove(plan->semantics, plan->schedules, true).ok());
  for (const Schedule& schedule : plan->schedules) {
    ASSERT_EQ(schedule.collectives.size(), 2u);  // one a chunk
    for (const ShmCollective& collective : schedule.collectives) {
      EXPECT_EQ(collective.kind, ShmCollectiveKind::broadcast);
      EXPECT_EQ(collective.members.count, 4u);
    }
  }
}

}  // namespace
}  // namespace plait::plan
