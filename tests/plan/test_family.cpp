// Every plan family is proven on every hierarchy of up to 64 ranks, and on random ones that are not uniform.
#include <gtest/gtest.h>

#include <random>

#include "plan/family.h"
#include "plan/proof.h"

namespace plait {
namespace {

// All ordered factorisations of `ranks` into at most `levels` factors of two or more, outermost first.
void factorise(int ranks, int levels, std::vector<int>& prefix, std::vector<std::vector<int>>& all) {
  if (ranks == 1) {
    if (!prefix.empty()) all.push_back(prefix);
    return;
  }
  if (levels == 0) return;
  for (int factor = 2; factor <= ranks; ++factor) {
    if (ranks % factor != 0) continue;
    prefix.push_back(factor);
    factorise(ranks / factor, levels - 1, prefix, all);
    prefix.pop_back();
  }
}

void expect_proven(const Hierarchy& hierarchy, Collective collective, bool commutative, int root, int chunks) {
  const auto found = candidates(collective, hierarchy, commutative);
  bool flat = false, hierarchical = false;
  for (const Candidate& candidate : found) {
    const bool is_flat = candidate.grid == GridKind::flat || candidate.grid == GridKind::rank_order;
    (is_flat ? flat : hierarchical) = true;
    const auto plan = lower(candidate, collective, root, candidate.pipelined ? chunks : 1, hierarchy, true);
    ASSERT_TRUE(plan.ok()) << name(collective) << " " << candidate.name << " on " << hierarchy.describe() << ": "
                           << plan.status().message();
    const Status status = prove(plan->semantics, plan->schedules, commutative);
    EXPECT_TRUE(status.ok()) << name(collective) << " " << candidate.name << " on " << hierarchy.describe() << " root "
                             << root << ": " << status.message();
  }
  EXPECT_TRUE(flat) << name(collective) << " on " << hierarchy.describe();
  bool in_rank_order = true;  // only then can a hierarchy's groups keep the order of operands
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) in_rank_order &= hierarchy.place_of(rank) == rank;
  if (commutative || in_rank_order) {
    EXPECT_EQ(hierarchical, hierarchy.levels().size() >= 2) << name(collective) << " on " << hierarchy.describe();
  }
}

void expect_all_proven(const Hierarchy& hierarchy, int chunks, std::mt19937& random) {
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    const int root = rooted(collective) ? static_cast<int>(random() % static_cast<unsigned>(hierarchy.ranks())) : 0;
    // The number of blocks of an all-to-all grows with the square of the ranks.
    if (collective == Collective::alltoall && hierarchy.ranks() > 32 && random() % 8 != 0) continue;
    expect_proven(hierarchy, collective, true, root, chunks);
    if (reduces(collective)) expect_proven(hierarchy, collective, false, root, chunks);
  }
}

class UniformHierarchies : public testing::TestWithParam<int> {};

TEST_P(UniformHierarchies, EveryFamilyIsProven) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::vector<std::vector<int>> all;
  std::vector<int> prefix;
  factorise(GetParam(), 6, prefix, all);
  for (const auto& cardinalities : all)
    expect_all_proven(Hierarchy::uniform_of(cardinalities), GetParam() <= 16 ? 3 : 1, random);
}

INSTANTIATE_TEST_SUITE_P(Ranks, UniformHierarchies, testing::Range(2, 65));

TEST(RandomHierarchies, EveryFamilyIsProven) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 15);
    std::vector<Location> locations(static_cast<std::size_t>(ranks));
    for (Location& location : locations) {
      location.host.low = random() % 4;
      location.package = static_cast<int>(random() % 2);
      location.core = static_cast<int>(random() % 4);
    }
    expect_all_proven(Hierarchy::from_locations(locations), 1 + static_cast<int>(random() % 4), random);
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
        expect_proven(hierarchy, collective, true, root, 2);
    expect_all_proven(hierarchy, 2, random);
  }
}

}  // namespace
}  // namespace plait
