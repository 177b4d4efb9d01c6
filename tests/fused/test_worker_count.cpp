// Processors that several ranks may run on are shared evenly, whatever else each of these may run on.
#include "fused/workers/worker_count.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace plait::fused {
namespace {

cpu_set_t set_of(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

double share_of(std::size_t own, const std::vector<cpu_set_t>& sets) {
  std::vector<const cpu_set_t*> all;
  for (const cpu_set_t& set : sets) all.push_back(&set);
  return share_of_processors(sets[own], all);
}

TEST(ShareOfProcessors, IsAllThatNobodyElseMayRunOn) {
  const std::vector<cpu_set_t> sets = {set_of({0, 1, 2}), set_of({3, 70})};
  EXPECT_DOUBLE_EQ(share_of(0, sets), 3);
  EXPECT_DOUBLE_EQ(share_of(1, sets), 2);
}

TEST(ShareOfProcessors, IsEvenWhereAllMayRunEverywhere) {
  const std::vector<cpu_set_t> sets(4, set_of({0, 1}));
  for (std::size_t rank = 0; rank < sets.size(); ++rank) EXPECT_DOUBLE_EQ(share_of(rank, sets), 0.5);
}

TEST(ShareOfProcessors, CountsWhoMayRunOnEach) {
  const std::vector<cpu_set_t> sets = {set_of({0, 1, 2, 3}), set_of({2, 3}), set_of({3})};
  EXPECT_DOUBLE_EQ(share_of(0, sets), 1 + 1 + 0.5 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(share_of(1, sets), 0.5 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(share_of(2, sets), 1 / 3.0);
}

}  // namespace
}  // namespace plait::fused
