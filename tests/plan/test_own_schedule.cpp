// A rank's schedule, lowered alone, is the one that it has among all ranks', which test_candidates proves; and the
// proof by parts says so, too.
#include <gtest/gtest.h>

#include <random>

#include "all_candidates.h"
#include "factorisations.h"
#include "plan/lower/composition.h"
#include "plan/lower/exchange_proof.h"

namespace plait::plan {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int own_hierarchies = 10;
#else
constexpr int own_hierarchies = 60;
#endif

// Of all ranks, or of some drawn ones.
void expect_own_equal(const Candidate& candidate, const LoweredCall& call, int ranks, std::mt19937& random) {
  if (!lowers_alone(candidate)) return;
  SCOPED_TRACE(std::string(name(call.collective)) + " " + candidate.name + " on " + call.hierarchy.describe() +
               " root " + std::to_string(call.root) + (call.commutative ? "" : " in order"));
  const Routes routes = routes_by_node(call.hierarchy, ChannelKind::shm, ChannelKind::ucx);
  const auto all = lower(candidate, call.collective, call.root, call.commutative, call.hierarchy, routes);
  ASSERT_TRUE(all.ok()) << all.status().message();
  const Grid grid = grid_of(candidate, call, routes);
  const ComposedPlan composed{candidate.program, grid, in_order(call), routes, candidate.rails};
  const bool program = !candidate.program.instructions.empty();
  GroupProofs proofs;
  if (program) {
    const Status parts = prove_parts(composed, all->semantics, proofs);
    ASSERT_TRUE(parts.ok()) << parts.message();
  }
  const bool every = call.hierarchy.ranks() <= ranks;
  for (int i = 0; i < (every ? call.hierarchy.ranks() : ranks); ++i) {
    const int rank = every ? i : static_cast<int>(random() % static_cast<unsigned>(call.hierarchy.ranks()));
    const auto own = lower_own(candidate, call, routes, rank);
    ASSERT_TRUE(own.ok()) << own.status().message();
    ASSERT_TRUE(own->schedule == all->schedules[static_cast<std::size_t>(rank)])
        << "rank " << rank << " alone:\n"
        << describe(own->schedule) << "among all:\n"
        << describe(all->schedules[static_cast<std::size_t>(rank)]);
    if (!program && !candidate.exchange->direct) continue;
    const Status status = program ? prove_own(composed, *own, rank)
                                  : prove_direct(*candidate.exchange, call.hierarchy, routes, *own, rank);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

void expect_choices_equal(const Hierarchy& hierarchy, std::mt19937& random) {
  const Machine machine = default_machine();
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective == Collective::alltoall && hierarchy.ranks() > 32 && random() % 8 != 0) continue;
    for (const bool commutative : {true, false})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 18}) {
        if (!commutative && !reduces(collective)) continue;
        std::vector<std::size_t> counts(static_cast<std::size_t>(hierarchy.ranks()), bytes);
        Call call = sized_call(collective, commutative, bytes);
        if (collective == Collective::allgatherv || collective == Collective::reduce_scatter)
          call.counts = counts.data();
        const int root = rooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(hierarchy.ranks())) : 0;
        for (const Candidate& candidate : candidates(call, {.hierarchy = hierarchy, .machine = machine}, 2))
          expect_own_equal(candidate, {collective, root, commutative, hierarchy}, 6, random);
      }
  }
}

void expect_programs_equal(const Hierarchy& hierarchy, std::mt19937& random, bool every_root) {
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const int first = static_cast<int>(random() % static_cast<unsigned>(hierarchy.ranks()));
    const int roots = !rooted(collective) ? 1 : every_root ? hierarchy.ranks() : 1;
    for (int i = 0; i < roots; ++i)
      for (const bool commutative : {true, false}) {
        if (!commutative && !reduces(collective)) continue;
        const int chunks = 1 + static_cast<int>(random() % 3);
        const int root = rooted(collective) ? (first + i) % hierarchy.ranks() : 0;
        for (Candidate& candidate : all_candidates(collective, hierarchy, commutative, 4, 40, chunks, random)) {
          if (random() % 2 == 0 && candidate.exchange == nullptr) candidate.rails = {1, 0};
          expect_own_equal(candidate, {collective, root, commutative, hierarchy}, 16, random);
        }
      }
  }
}

class OwnSchedules : public testing::TestWithParam<int> {};

TEST_P(OwnSchedules, OfChosenPlansAreThoseAmongAll) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (const auto& cardinalities : factorisations(GetParam(), 6))
    expect_choices_equal(Hierarchy::uniform_of(cardinalities), random);
}

INSTANTIATE_TEST_SUITE_P(Ranks, OwnSchedules, testing::Range(2, 65));

TEST(OwnScheduleOfAnyProgram, OnSmallHierarchies) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int ranks = 2; ranks <= 12; ++ranks)
    for (const auto& cardinalities : factorisations(ranks, 3))
      expect_programs_equal(Hierarchy::uniform_of(cardinalities), random, true);
}

TEST(OwnScheduleOfAnyProgram, OnRandomHierarchies) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < own_hierarchies; ++round) {
    std::vector<Location> locations(2 + random() % 15);
    for (Location& location : locations) {
      location.host.low = random() % 4;
      location.package = static_cast<int>(random() % 2);
      location.core = static_cast<int>(random() % 4);
    }
    expect_programs_equal(Hierarchy::from_locations(locations), random, false);
  }
}

TEST(OwnScheduleOfAnyProgram, OnUnevenNodesWithEveryRoot) {
  std::mt19937 random(1);
  for (const auto& shape : std::vector<std::vector<int>>{{3, 2, 1}, {1, 2, 3}, {1, 1, 5}, {4, 1}, {7}, {2, 4, 2, 4}})
    expect_programs_equal(Hierarchy::nodes_of(shape), random, true);
}

}  // namespace
}  // namespace plait::plan
