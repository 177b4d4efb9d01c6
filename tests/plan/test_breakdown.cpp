// Where a plan's predicted time goes.
#include <gtest/gtest.h>

#include <random>

#include "plan/choose/breakdown.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

Call call_of(Collective collective, std::size_t bytes) {
  return {.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u};
}

double sum_of(const Breakdown& breakdown) {
  double sum = breakdown.rest;
  for (const TimeShare& share : breakdown.shares) sum += share.seconds;
  return sum;
}

double part(const Breakdown& breakdown, const std::string& level, Figure figure) {
  for (const TimeShare& share : breakdown.shares)
    if (share.level == level && share.figure == figure) return share.seconds;
  return 0;
}

// Every candidate of every planned collective: the shares are all of the time, and none of it counts twice.
TEST(Breakdown, SharesAddUpToTheTime) {
  const Machine machine = default_machine();
  for (const char* text : {"4x2", "1x8", "3,2,1", "2x2x4"}) {
    const auto shape = parse_shape(text);
    ASSERT_TRUE(shape.ok());
    const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = shape->siblings};
    for (int index = 0; index < planned_collectives; ++index) {
      const auto collective = static_cast<Collective>(index);
      if (collective == Collective::allgatherv || collective == Collective::reduce_scatter) continue;
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{4} << 20}) {
        const Call call = call_of(collective, collective == Collective::barrier ? 0 : bytes);
        for (const Candidate& candidate : candidates(call, context, 3)) {
          const auto breakdown = break_down(candidate.name, call, context);
          ASSERT_TRUE(breakdown.ok()) << candidate.name << ": " << breakdown.status().message();
          EXPECT_NEAR(sum_of(*breakdown) / breakdown->seconds, 1, 1e-3)
              << text << " " << candidate.name << " " << bytes;
          for (const TimeShare& share : breakdown->shares) EXPECT_GT(share.seconds, 0) << candidate.name;
          EXPECT_EQ(breakdown->rest, 0) << text << " " << name(collective) << " " << candidate.name << " " << bytes;
        }
      }
    }
  }
}

// What a plan is predicted to take does not depend on who asks.
TEST(Breakdown, HasTheTimeOfTheExchangesOfAlltoall) {
  const Machine machine = default_machine();
  const auto shape = parse_shape("4x2");
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
    const Call call = call_of(Collective::alltoall, bytes);
    for (const Candidate& candidate : candidates(call, context, 3))
      EXPECT_EQ(break_down(candidate.name, call, context)->seconds, candidate.seconds) << candidate.name;
  }
}

// Short calls wait for messages, long ones for the port.
TEST(Breakdown, FindsWhatTakesTheTime) {
  Machine machine = default_machine();
  machine.levels.front().port_seconds_per_byte = 1 / 31.25e6;
  const auto shape = parse_shape("4x2");
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = 1};
  const Call small = call_of(Collective::allreduce, 8), large = call_of(Collective::allreduce, std::size_t{16} << 20);
  const auto quick = break_down(candidates(small, context, 1).front().name, small, context);
  const auto slow = break_down(candidates(large, context, 1).front().name, large, context);
  ASSERT_TRUE(quick.ok() && slow.ok());
  EXPECT_GT(part(*quick, "node", Figure::alpha), 0.5 * quick->seconds);
  EXPECT_GT(part(*slow, "node", Figure::beta), 0.9 * slow->seconds);
  EXPECT_EQ(part(*slow, "rank", Figure::gamma), 0);
}

// Where ranks share cores, waiting for one is no figure's.
TEST(Breakdown, WaitingForACoreIsTheRest) {
  Machine machine = default_machine();
  machine.ranks_per_core = 4;
  const auto shape = parse_shape("2x8");
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = 1};
  const Call call = call_of(Collective::allreduce, 8);
  const auto breakdown = break_down(candidates(call, context, 1).front().name, call, context);
  ASSERT_TRUE(breakdown.ok());
  EXPECT_GT(breakdown->rest, 0);
  EXPECT_NEAR(sum_of(*breakdown) / breakdown->seconds, 1, 1e-6);
}

TEST(Breakdown, APlanThatTheCallCannotUseIsRefused) {
  const Machine machine = default_machine();
  const auto shape = parse_shape("4x2");
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = 1};
  const Call call = call_of(Collective::allreduce, 8);
  for (const char* plan : {"nonsense", "BC.1", "pairwise", ""})
    EXPECT_FALSE(break_down(plan, call, context).ok()) << plan;
}

}  // namespace
}  // namespace plait::plan
