// Sets of a shared heap's pages, against a set of numbers.
#include "tl/shm/page_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace plait::tl {
namespace {

constexpr std::uint32_t pages = 700;

class PageSetTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(set_.create(pages)); }
  void put(Span span, bool in) {
    in ? set_.insert(span) : set_.erase(span);
    for (std::uint32_t page = span.first; page < span.first + span.pages; ++page) expected_[page] = in;
  }
  // Pages of the span that are in, by the runs of both kinds.
  void check(Span span) const {
    const std::uint32_t end = span.first + span.pages;
    std::uint32_t at = span.first;
    for (const bool in : {true, false}) {
      std::vector<bool> found(pages, !in);
      for (Span run = in ? set_.run_inside(span, at) : set_.run_outside(span, at); run.pages > 0;
           run = in ? set_.run_inside(span, run.first + run.pages) : set_.run_outside(span, run.first + run.pages))
        for (std::uint32_t page = run.first; page < run.first + run.pages; ++page) found[page] = in;
      for (std::uint32_t page = span.first; page < end; ++page) ASSERT_EQ(found[page], expected_[page]) << page;
    }
    bool any = false, all = true;
    for (; at < end; ++at) {
      any |= expected_[at];
      all &= expected_[at];
    }
    EXPECT_EQ(set_.holds_any(span), any);
    EXPECT_EQ(set_.holds_all(span), all);
  }

  PageSet set_;
  std::vector<bool> expected_ = std::vector<bool>(pages, false);
};

TEST_F(PageSetTest, IsEmptyAtFirstAndWhenAllIsGone) {
  EXPECT_TRUE(set_.empty());
  check({.first = 0, .pages = pages});
  put({.first = 63, .pages = 2}, true);
  put({.first = 63, .pages = 2}, true);
  EXPECT_FALSE(set_.empty());
  check({.first = 0, .pages = pages});
  put({.first = 0, .pages = pages}, false);
  EXPECT_TRUE(set_.empty());
}

TEST_F(PageSetTest, IsWhatWasPutInAndNotTakenOut) {
  const unsigned seed = testing::UnitTest::GetInstance()->random_seed() != 0
                            ? static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed())
                            : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto any_span = [&] {
    const std::uint32_t first = below(pages);
    return Span{.first = first, .pages = 1 + below(std::min(pages - first, 1 + below(200)))};
  };
  for (int step = 0; step < 500; ++step) {
    put(any_span(), below(3) != 0);
    check({.first = 0, .pages = pages});
    check(any_span());
  }
}

}  // namespace
}  // namespace plait::tl
