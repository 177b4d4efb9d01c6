// Ranks found by their numbers, against a map.
#include "tl/rank_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace plait::tl {
namespace {

TEST(RankIndex, FindsWhatWasAdded) {
  for (const std::int32_t stride : {1, 2, 64, 65, 4096}) {
    RankIndex index;
    std::map<std::int32_t, std::int32_t> added;
    std::mt19937 random(static_cast<std::uint32_t>(stride));
    for (std::int32_t number = 0; number < 500; ++number) {
      const std::int32_t rank = static_cast<std::int32_t>(random() % 2000) * stride;
      EXPECT_EQ(index.find(rank), added.contains(rank) ? added[rank] : RankIndex::none);
      if (!added.try_emplace(rank, number).second) continue;
      index.add(rank, number);
      EXPECT_EQ(index.size(), added.size());
    }
    for (const auto& [rank, number] : added) EXPECT_EQ(index.find(rank), number);
  }
}

TEST(RankIndex, HasNobodyAtFirst) {
  const RankIndex index;
  for (const std::int32_t rank : {-1, 0, 7, 1 << 20}) EXPECT_EQ(index.find(rank), RankIndex::none);
}

}  // namespace
}  // namespace plait::tl
