// Every family, bound to random sizes and run on real numbers by simulated ranks, gives what the collective must give.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "all_candidates.h"
#include "problem.h"
#include "simulated_ranks.h"

namespace plait::plan {
namespace {

constexpr std::size_t mib = 1 << 20;

void check(Problem problem, const Candidate& candidate, const Hierarchy& hierarchy, unsigned seed) {
  if (!problem.counts.empty()) problem.call.counts = problem.counts.data();
  SCOPED_TRACE(std::string(name(problem.call.collective)) + " " + candidate.name + " on " + hierarchy.describe() +
               " count " + std::to_string(problem.call.count) + " root " + std::to_string(problem.call.root));
  const auto plan = lower(candidate, problem.call.collective, problem.call.root, problem.call.commutative, hierarchy);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<SimulatedRank> ranks;
  for (int r = 0; r < problem.ranks; ++r) ranks.push_back(make_rank(problem, *plan, r));
  ASSERT_TRUE(SimulatedJob(ranks, seed, problem.call.commutative ? sum_of : composition_of).run());
  for (int r = 0; r < problem.ranks; ++r) {
    const std::vector<Value> wanted = expected(problem, r);
    if (wanted.empty()) continue;
    ASSERT_EQ(
        std::memcmp(ranks[static_cast<std::size_t>(r)].output.data(), wanted.data(), wanted.size() * sizeof(Value)), 0)
        << "rank " << r;
  }
}

TEST(BoundSchedule, EveryProgramGivesTheRightNumbers) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::vector<int>> shapes = {{2}, {5}, {2, 2}, {2, 2, 2}, {3, 2, 1}, {1, 4}, {1, 1, 1}, {3, 3}};
  for (int round = 0; round < 3; ++round)
    for (const auto& shape : shapes) {
      const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
      for (int c = 0; c < planned_collectives; ++c) {
        const auto collective = static_cast<Collective>(c);
        for (const bool commutative : {true, false}) {
          if (!commutative && !reduces(collective)) continue;
          const Problem problem = random_problem(collective, hierarchy.ranks(), commutative, random);
          const int chunks = 1 + static_cast<int>(random() % 4);
          for (const Candidate& candidate : all_candidates(collective, hierarchy, commutative, 4, 40, chunks, random))
            check(problem, candidate, hierarchy, random());
        }
      }
    }
}

// All that the engine reads, in numbers.
std::vector<std::uint64_t> numbers(const BoundSchedule& bound) {
  std::vector<std::uint64_t> all = {bound.scratch_bytes, bound.input_bytes, bound.output_bytes, bound.element_bytes,
                                    bound.channels_used.bits()};
  const auto add = [&](auto... values) { (all.push_back(static_cast<std::uint64_t>(values)), ...); };
  for (const BoundSpan& span : bound.spans) add(span.offset, span.bytes, span.space);
  for (const BoundStep& step : bound.steps) {
    add(step.kind, step.channel, step.incoming_left, step.rail, step.peer, step.collective, step.predecessors);
    for (const SpanList& list : {step.successors, step.source, step.operand, step.destination})
      add(list.first, list.count);
    add(step.bytes, step.lane);
  }
  for (const Lane& lane : bound.lanes) add(lane.steps.first, lane.steps.count);
  for (const BoundShmCollective& collective : bound.collectives) {
    add(collective.kind, collective.takes_own, collective.lower_only, collective.root, collective.self,
        collective.bytes, collective.members.size());
    for (const std::int32_t member : collective.members) add(member);
    for (const std::uint64_t offset : collective.piece_offsets) add(offset);
  }
  all.insert(all.end(), bound.successors.begin(), bound.successors.end());
  all.insert(all.end(), bound.lane_steps.begin(), bound.lane_steps.end());
  return all;
}

// How many plans' schedules grow with the data; of those, rebind() is bind().
int check_growth(const Problem& problem, const Candidate& candidate, const Hierarchy& hierarchy, const Call& longer) {
  const Call& call = problem.call;
  const auto plan = lower(candidate, call.collective, call.root, call.commutative, hierarchy);
  if (!plan.ok() || !grows_evenly(plan->semantics)) return 0;
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (const bool in_place : {false, true}) {
      const Schedule& schedule = plan->schedules[static_cast<std::size_t>(rank)];
      Placement before = dense_placement(call), after = dense_placement(longer);
      before.in_place = after.in_place = in_place;
      BoundSchedule bound = bind(schedule, plan->semantics, rank, before);
      rebind(schedule, {payload_bytes(call, problem.ranks), payload_bytes(longer, problem.ranks), longer.element_bytes},
             bound);
      EXPECT_EQ(numbers(bound), numbers(bind(schedule, plan->semantics, rank, after)))
          << name(call.collective) << " " << candidate.name << " on " << hierarchy.describe() << ", rank " << rank
          << ": " << call.count << " to " << longer.count;
    }
  return 1;
}

TEST(BoundSchedule, WhatGrowsEvenlyIsBoundAnewAsFromTheStart) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::vector<int>> shapes = {{2}, {5}, {2, 2}, {3, 2, 1}, {1, 1, 1}};
  int grown = 0, cut = 0;
  for (const auto& shape : shapes) {
    const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
    for (int c = 0; c < planned_collectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      const Problem problem = random_problem(collective, hierarchy.ranks(), true, random);
      if (problem.call.count == 0) continue;
      Call other = problem.call;
      other.count = 1 + random() % (random() % 2 == 0 ? 1500 : mib);
      other.element_bytes = random() % 2 == 0 ? 8 : 3;
      for (const int chunks : {1, 3})
        for (const Candidate& candidate : all_candidates(collective, hierarchy, true, 4, 20, chunks, random))
          ++(check_growth(problem, candidate, hierarchy, other) != 0 ? grown : cut);
    }
  }
  EXPECT_GT(grown, 100);
  EXPECT_GT(cut, 100);
}

Call exchange_of(std::size_t bytes) {
  return {.collective = Collective::alltoall, .root = 0, .count = bytes, .element_bytes = 1};
}

BoundSchedule pairwise_of(const Hierarchy& hierarchy, std::size_t bytes, int rank = 0) {
  const auto plan =
      lower({.name = "pairwise", .exchange = &exchanges::pairwise}, Collective::alltoall, 0, true, hierarchy);
  EXPECT_TRUE(plan.ok());
  return bind(plan->schedules[static_cast<std::size_t>(rank)], plan->semantics, rank,
              dense_placement(exchange_of(bytes)));
}

// The most sends to other nodes, and bytes of them, that are under way at once where the first to leave end first.
std::pair<std::size_t, std::uint64_t> most_under_way(const BoundSchedule& bound) {
  std::vector<std::uint32_t> open;
  for (const BoundStep& step : bound.steps) open.push_back(step.predecessors);
  std::deque<std::uint32_t> sends;
  std::size_t most = 0;
  std::uint64_t bytes = 0, most_bytes = 0;
  const auto leave = [&](std::uint32_t i) {
    if (bound.steps[i].kind != StepKind::send || bound.steps[i].channel == ChannelKind::shm) return;
    sends.push_back(i);
    most_bytes = std::max(most_bytes, bytes += bound.steps[i].bytes);
    most = std::max(most, sends.size());
  };
  for (std::uint32_t i = 0; i < open.size(); ++i)
    if (open[i] == 0) leave(i);
  std::size_t left = 0;
  while (!sends.empty()) {
    const BoundStep& gone = bound.steps[sends.front()];
    bytes -= gone.bytes;
    sends.pop_front();
    ++left;
    for (std::uint32_t k = gone.successors.first; k < gone.successors.first + gone.successors.count; ++k)
      if (--open[bound.successors[k]] == 0) leave(bound.successors[k]);
  }
  EXPECT_EQ(left, std::ranges::count_if(bound.steps, [](const BoundStep& step) {
              return step.kind == StepKind::send && step.channel != ChannelKind::shm;
            }));
  return {most, most_bytes};
}

TEST(PacedSends, LongMessagesLeaveAFewAtATime) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector<int>(12, 2));
  EXPECT_EQ(most_under_way(pairwise_of(hierarchy, 2 * mib)).first, 2U);
  EXPECT_EQ(most_under_way(pairwise_of(hierarchy, mib / 8)).first, 5U) << "a port of a fast network is never idle";
  EXPECT_EQ(most_under_way(pairwise_of(hierarchy, 1024)).first, 22U) << "short ones leave at once";
  EXPECT_EQ(most_under_way(pairwise_of(Hierarchy::nodes_of(std::vector<int>{8}), 2 * mib)).first, 0U);
}

TEST(PacedSends, LengthsOfTheirOwn) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  BoundSchedule bound = pairwise_of(Hierarchy::nodes_of(std::vector<int>(40, 1)), mib);
  for (int round = 0; round < 100; ++round) {
    std::uint64_t longest = 0;
    for (BoundStep& step : bound.steps) {
      step.bytes = std::uint64_t{1} << random() % 24;
      if (step.kind == StepKind::send) longest = std::max(longest, step.bytes);
    }
    pace_sends(bound);
    const std::uint64_t most_short = 40 * 65536;
    EXPECT_LE(most_under_way(bound).second, mib / 2 + 2 * longest + most_short);
  }
}

// A slow rail's part of a message does not wait for the fast one's: each has a port of its own.
TEST(PacedSends, RailsDoNotWaitForEachOther) {
  BoundSchedule bound = pairwise_of(Hierarchy::nodes_of(std::vector<int>(12, 1)), 2 * mib);
  std::map<int, int> sends, first;
  for (BoundStep& step : bound.steps)
    if (step.kind == StepKind::send) step.rail = static_cast<std::int8_t>(step.peer % 3);
  pace_sends(bound);
  for (const BoundStep& step : bound.steps)
    if (step.kind == StepKind::send) ++sends[step.rail], first[step.rail] += step.predecessors == 0 ? 1 : 0;
  EXPECT_EQ(sends.size(), 3U);
  for (const auto& [rail, count] : sends) EXPECT_EQ(first[rail], 2) << "rail " << rail;
}

// What another rank's receive waits for may come of a later send.
TEST(PacedSends, AreThoseOfExchangesAlone) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector<int>(8, 1));
  const Call call{.collective = Collective::bcast, .root = 0, .count = 2 * mib, .element_bytes = 1};
  const auto candidate = named_candidate("BC.1(flat)", call, {.hierarchy = hierarchy, .machine = default_machine()});
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const auto plan = lower(*candidate, call.collective, 0, true, hierarchy);
  ASSERT_TRUE(plan.ok());
  const BoundSchedule bound = bind(plan->schedules[0], plan->semantics, 0, dense_placement(call));
  for (const BoundStep& step : bound.steps) EXPECT_EQ(step.predecessors, 0U);
}

TEST(PacedSends, ChangeWithTheSize) {
  const Hierarchy hierarchy = Hierarchy::nodes_of(std::vector<int>(5, 2));
  for (const auto& [before, after] : {std::pair(std::size_t{8}, 2 * mib), std::pair(2 * mib, std::size_t{8})}) {
    BoundSchedule bound = pairwise_of(hierarchy, before, 3);
    const auto plan =
        lower({.name = "pairwise", .exchange = &exchanges::pairwise}, Collective::alltoall, 0, true, hierarchy);
    rebind(plan->schedules[3], {before, after, 1}, bound);
    EXPECT_EQ(numbers(bound), numbers(pairwise_of(hierarchy, after, 3)));
  }
}

}  // namespace
}  // namespace plait::plan
