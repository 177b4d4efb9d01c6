// The plans that are chosen are proven on every hierarchy of up to 64 ranks; every kind of program on small hierarchies
// and on random ones that are not uniform.
#include <gtest/gtest.h>

#include <random>

#include "all_candidates.h"
#include "factorisations.h"
#include "plan/lower/proof.h"

namespace plait::plan {
namespace {

// A sanitizer looks at the code, which a few hierarchies reach in all its parts; the release build proves them all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int random_hierarchies = 15;
#else
constexpr int random_hierarchies = 60;
#endif

void expect_proven(const Hierarchy& hierarchy, const std::vector<Candidate>& found, Collective collective,
                   bool commutative, int root) {
  EXPECT_FALSE(found.empty()) << name(collective) << " on " << hierarchy.describe();
  for (const Candidate& candidate : found) {
    const auto plan = lower(candidate, collective, root, commutative, hierarchy);
    ASSERT_TRUE(plan.ok()) << name(collective) << " " << candidate.name << " on " << hierarchy.describe() << ": "
                           << plan.status().message();
    const Status status = prove(plan->semantics, plan->schedules, commutative);
    EXPECT_TRUE(status.ok()) << name(collective) << " " << candidate.name << " on " << hierarchy.describe() << " root "
                             << root << ": " << status.message();
  }
}

// What the planner would take for a small, a middling and a large call.
void expect_choices_proven(const Hierarchy& hierarchy, int count, std::mt19937& random) {
  const Machine machine = default_machine();
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const int root = rooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(hierarchy.ranks())) : 0;
    // The number of blocks of an all-to-all grows with the square of the ranks.
    if (collective == Collective::alltoall && hierarchy.ranks() > 32 && random() % 8 != 0) continue;
    for (const bool commutative : {true, false}) {
      if (!commutative && !reduces(collective)) continue;
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 14, std::size_t{1} << 18}) {
        std::vector<std::size_t> counts(static_cast<std::size_t>(hierarchy.ranks()), bytes);
        Call call = sized_call(collective, commutative, bytes);
        if (collective == Collective::allgatherv || collective == Collective::reduce_scatter)
          call.counts = counts.data();
        expect_proven(hierarchy, candidates(call, {.hierarchy = hierarchy, .machine = machine}, count), collective,
                      commutative, root);
      }
    }
  }
}

// Every kind of program that there is.
void expect_all_proven(const Hierarchy& hierarchy, int chunks, std::mt19937& random) {
  for (int c = 0; c < planned_collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const int root = rooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(hierarchy.ranks())) : 0;
    for (const bool commutative : {true, false}) {
      if (!commutative && !reduces(collective)) continue;
      const int instructions = hierarchy.levels().size() <= 2 ? 4 : 3;
      expect_proven(hierarchy, all_candidates(collective, hierarchy, commutative, instructions, 60, chunks, random),
                    collective, commutative, root);
    }
  }
}

class UniformHierarchies : public testing::TestWithParam<int> {};

TEST_P(UniformHierarchies, ChosenPlansAreProven) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (const auto& cardinalities : factorisations(GetParam(), 6))
    expect_choices_proven(Hierarchy::uniform_of(cardinalities), GetParam() <= 24 ? 3 : 1, random);
}

INSTANTIATE_TEST_SUITE_P(Ranks, UniformHierarchies, testing::Range(2, 65));

// Who cuts the data for 256 ranks may not cut it into chunks as well: such programs are priced without, and those that
// are the cheapest without are among what is looked at.
TEST(Candidates, ArePricedWithTheChunksThatTheyMayHave) {
  Machine machine = default_machine();
  const Hierarchy hierarchy = Hierarchy::uniform_of(std::array{16, 16});
  const CandidateContext context{.hierarchy = hierarchy, .machine = machine};
  const Call call{.collective = Collective::bcast, .count = 4 << 20, .element_bytes = 1};
  const auto found = candidates(call, context, 8);
  ASSERT_FALSE(found.empty());
  bool one_is_whole = false;
  for (const Candidate& candidate : found) {
    one_is_whole |= candidate.chunks == 1;
    Result<Candidate> again = named_candidate(candidate.name + (candidate.chunks == 1 ? " x1" : ""), call, context);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_NEAR(again->seconds / candidate.seconds, 1, 1e-9) << candidate.name;
  }
  EXPECT_TRUE(one_is_whole);
}

TEST(SmallHierarchies, EveryProgramIsProven) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int ranks = 2; ranks <= 12; ++ranks) {
    for (const auto& cardinalities : factorisations(ranks, 3))
      expect_all_proven(Hierarchy::uniform_of(cardinalities), 2, random);
  }
}

TEST(RandomHierarchies, EveryProgramIsProven) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < random_hierarchies; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 15);
    std::vector<Location> locations(static_cast<std::size_t>(ranks));
    for (Location& location : locations) {
      location.host.low = random() % 4;
      location.package = static_cast<int>(random() % 2);
      location.core = static_cast<int>(random() % 4);
    }
    const Hierarchy hierarchy = Hierarchy::from_locations(locations);
    expect_all_proven(hierarchy, 1 + static_cast<int>(random() % 4), random);
    expect_choices_proven(hierarchy, 3, random);
  }
}

TEST(UnevenNodes, EveryRootIsProven) {
  std::mt19937 random(1);
  const std::vector<std::vector<int>> shapes = {{3, 2, 1}, {1, 2, 3}, {1, 1, 5}, {4, 1}, {7}, {1, 1, 1}};
  for (const auto& shape : shapes) {
    const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
    for (int root = 0; root < hierarchy.ranks(); ++root)
      for (const Collective collective :
           {Collective::bcast, Collective::reduce, Collective::gather, Collective::scatter})
        expect_proven(hierarchy, all_candidates(collective, hierarchy, true, 4, 60, 2, random), collective, true, root);
    expect_all_proven(hierarchy, 2, random);
  }
}

}  // namespace
}  // namespace plait::plan
