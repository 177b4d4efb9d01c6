// Rewritings among a call's candidates: which, where, and that each is proven.
#include "plan/choose/motif_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"
#include "plan/step/step_scaling.h"

namespace plait::plan {
namespace {

constexpr std::size_t mib = 1 << 20;

Machine with_rails(std::vector<double> shares) {
  Machine machine = default_machine();
  machine.levels.front().take_rails(std::move(shares));
  return machine;
}

std::vector<std::string> names(Collective collective, std::size_t bytes, const std::vector<int>& nodes,
                               const std::vector<double>& shares = {}, bool commutative = true) {
  const Machine machine = with_rails(shares);
  const Hierarchy hierarchy = Hierarchy::nodes_of(nodes);
  return motif_names({.collective = collective, .count = bytes, .commutative = commutative},
                     {.hierarchy = hierarchy, .machine = machine, .rails = static_cast<int>(shares.size())});
}

using Names = std::vector<std::string>;

TEST(MotifNames, LongExchangesAreSplinedByNodes) {
  EXPECT_EQ(names(Collective::alltoall, mib, {2, 2, 2, 2}), Names{"[spline:4]"});
  EXPECT_EQ(names(Collective::alltoall, 4096, {2, 2, 2, 2}), Names{});
  EXPECT_EQ(names(Collective::alltoall, mib, {4, 4}), Names{}) << "one other node";
  EXPECT_EQ(names(Collective::alltoall, mib, {3, 2, 2}), Names{}) << "that divides by no number of nodes";
}

TEST(MotifNames, SegmentsAreDealtByRates) {
  EXPECT_EQ(names(Collective::bcast, 8 * mib, {2, 2}, {0.8, 0.2}), Names{"[segment:5] @0,0,0,0,1"});
  EXPECT_EQ(names(Collective::bcast, 8 * mib, {2, 2}, {0.5, 0.5}), Names{}) << "rails that a message is halved for";
  EXPECT_EQ(names(Collective::bcast, 8 * mib, {2, 2}, {0.95, 0.05}), Names{}) << "an eighth is too much for the other";
  EXPECT_EQ(names(Collective::bcast, 8 * mib, {4}, {0.8, 0.2}), Names{}) << "one node";
  EXPECT_EQ(names(Collective::bcast, 4096, {2, 2}, {0.8, 0.2}), Names{});
  const Names reductions = names(Collective::allreduce, 8 * mib, {2, 2}, {0.25, 0.75});
  EXPECT_EQ(reductions, (Names{"[segment:4] @1,1,0,1", "[segment:4,tree:2]"}));
}

TEST(MotifNames, NoneWhereOrderCountsOrRanksAreMany) {
  EXPECT_EQ(names(Collective::allreduce, mib, {2, 2}, {0.8, 0.2}, false), Names{});
  EXPECT_EQ(names(Collective::alltoall, mib, std::vector<int>(16, 8)), Names{});
}

TEST(MotifNames, AllArePricedAndProven) {
  const Machine machine = with_rails({0.8, 0.2});
  for (const std::vector<int>& nodes :
       std::vector<std::vector<int>>{{1, 1, 1}, {2, 2}, {2, 2, 2, 2}, {3, 1, 2}, {5, 4}}) {
    const Hierarchy hierarchy = Hierarchy::nodes_of(nodes);
    const CandidateContext context{.hierarchy = hierarchy, .machine = machine, .rails = 2};
    for (const Collective collective :
         {Collective::allreduce, Collective::bcast, Collective::reduce, Collective::allgather,
          Collective::reduce_scatter_block, Collective::alltoall}) {
      const Call call{.collective = collective, .count = 4 * mib};
      for (const std::string& name : motif_names(call, context)) {
        const auto candidate = named_candidate(name, call, context);
        ASSERT_TRUE(candidate.ok()) << name << " on " << hierarchy.describe() << ": " << candidate.status().message();
        EXPECT_GT(candidate->seconds, 0) << name;
        const auto plan = lower(*candidate, collective, 0, true, hierarchy);
        ASSERT_TRUE(plan.ok()) << name << " on " << hierarchy.describe() << ": " << plan.status().message();
        const Status proven = prove(plan->semantics, plan->schedules, true);
        EXPECT_TRUE(proven.ok()) << name << " on " << hierarchy.describe() << ": " << proven.message();
      }
    }
  }
}

// A rewriting that is predicted to take as long does not go before a program or an exchange.
TEST(MotifNames, AreAmongTheCandidatesBehindWhatIsAsQuick) {
  const Machine machine = default_machine();
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector<int>{2, 2, 2, 2});
  const std::vector<Candidate> found = candidates({.collective = Collective::alltoall, .count = 4 * mib},
                                                  {.hierarchy = hierarchy, .machine = machine}, 3);
  EXPECT_EQ(found.front().name, "pairwise");
  EXPECT_EQ(std::ranges::count(found, "[spline:4]", &Candidate::name), 1);
}

TEST(StepScaling, EachRankHasAsMuchToDo) {
  const step::Step small{.name = "s",
                         .tasks = {{.name = "c", .seconds = 2},
                                   {.name = "x", .collective = Collective::alltoall, .bytes = 4096},
                                   {.name = "g", .collective = Collective::allgather, .bytes = 1024},
                                   {.name = "r", .collective = Collective::allreduce, .bytes = 512}}};
  const step::Step large = step::on_ranks(small, 8, 64);
  EXPECT_EQ(large.tasks[0].seconds, 2);
  EXPECT_EQ(large.tasks[1].bytes, 512u);
  EXPECT_EQ(large.tasks[2].bytes, 128u);
  EXPECT_EQ(large.tasks[3].bytes, 512u);
  EXPECT_EQ(step::on_ranks(small, 8, 1 << 17).tasks[2].bytes, 1u) << "nothing becomes empty";
}

TEST(StepScaling, TheFastestRailAloneHasItsShare) {
  const Machine both = with_rails({0.2, 0.8}), one = step::over_fastest_rail(both);
  EXPECT_EQ(one.levels.front().rails, 1);
  EXPECT_DOUBLE_EQ(one.levels.front().port_seconds_per_byte, both.levels.front().port_seconds_per_byte / 0.8);
  const Machine same = step::over_fastest_rail(default_machine());
  EXPECT_EQ(same.levels.front().port_seconds_per_byte, default_machine().levels.front().port_seconds_per_byte);
}

}  // namespace
}  // namespace plait::plan
