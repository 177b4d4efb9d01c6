// The table of a shared heap's pages against a plain array of who owns each page.
#include "tl/shm/span_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

namespace plait::tl {
namespace {

enum class Page : std::uint8_t { clean, dirty, used };

// What the table should say, page by page.
struct Model {
  std::vector<Page> pages;
  std::map<std::uint32_t, std::uint32_t> blocks;  // first page -> pages

  void take(const Span& span) {
    for (std::uint32_t i = 0; i < span.pages; ++i) {
      Page& page = pages[span.first + i];
      ASSERT_EQ(page, span.clean ? Page::clean : Page::dirty) << "page " << span.first + i;
      page = Page::used;
    }
    blocks[span.first] = span.pages;
  }
  void give(std::uint32_t first) {
    for (std::uint32_t i = 0; i < blocks[first]; ++i) pages[first + i] = Page::dirty;
    blocks.erase(first);
  }
  std::uint32_t count(Page kind) const {
    return static_cast<std::uint32_t>(std::count(pages.begin(), pages.end(), kind));
  }
};

void expect_same(const SpanTable& table, const Model& model) {
  EXPECT_EQ(table.used_pages(), model.count(Page::used));
  EXPECT_EQ(table.dirty_pages(), model.count(Page::dirty));
  EXPECT_EQ(table.used_spans(), model.blocks.size());
  std::uint32_t from = 0;
  for (const auto& [first, pages] : model.blocks) {
    EXPECT_EQ(table.used_at(first), pages);
    const Span span = table.next_used(from);
    EXPECT_EQ(span.first, first);
    EXPECT_EQ(span.pages, pages);
    from = span.first + span.pages;
  }
  EXPECT_EQ(table.next_used(from).pages, 0u);
}

TEST(SpanTable, RoundsUpByAtMostASixteenth) {
  for (std::uint32_t pages = 1; pages < 100'000; ++pages) {
    const std::uint32_t rounded = SpanTable::round_up(pages);
    ASSERT_GE(rounded, pages);
    ASSERT_LE(rounded - pages, pages / 16);
    ASSERT_EQ(SpanTable::round_up(rounded), rounded);
  }
}

TEST(SpanTable, UsesDirtyPagesFirst) {
  SpanTable table;
  ASSERT_TRUE(table.create(1000));
  const Span first = table.allocate(100);
  const Span second = table.allocate(100);
  EXPECT_TRUE(first.clean);
  EXPECT_TRUE(second.clean);
  table.release(first.first);
  const Span again = table.allocate(40);
  EXPECT_FALSE(again.clean);
  EXPECT_EQ(again.first, first.first);
}

TEST(SpanTable, MergesWhatIsFreedInAnyOrder) {
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    SpanTable table;
    ASSERT_TRUE(table.create(48));
    const std::vector<Span> spans = {table.allocate(16), table.allocate(16), table.allocate(16)};
    EXPECT_EQ(table.allocate(1).pages, 0u);
    for (const int i : order) table.release(spans[static_cast<std::size_t>(i)].first);
    const Span all = table.allocate(48);
    EXPECT_EQ(all.pages, 48u);
    EXPECT_FALSE(all.clean);
  }
}

TEST(SpanTable, AlignsAndGivesTheSkippedPagesToOthers) {
  SpanTable table;
  ASSERT_TRUE(table.create(1024));
  const Span odd = table.allocate(1);
  const Span aligned = table.allocate(64, 64);
  EXPECT_EQ(aligned.first % 64, 0u);
  EXPECT_NE(aligned.pages, 0u);
  EXPECT_NE(aligned.first, odd.first);
  table.release(odd.first);
  table.release(aligned.first);
  EXPECT_EQ(table.dirty_pages(), odd.pages + aligned.pages);
}

TEST(SpanTable, TakesTheOldestDirtySpanAndOnlyItsEndWhenItIsLonger) {
  SpanTable table;
  ASSERT_TRUE(table.create(1000));
  const Span old = table.allocate(100);
  table.allocate(1);
  const Span young = table.allocate(100);
  table.allocate(1);
  table.release(old.first);
  table.release(young.first);
  const Span taken = table.take_dirty(30);
  EXPECT_EQ(taken.pages, 30u);
  EXPECT_EQ(taken.first, old.first + old.pages - 30);
  table.give_clean(taken);
  EXPECT_EQ(table.dirty_pages(), old.pages + young.pages - 30);
}

TEST(SpanTable, RandomUseKeepsEveryPageOnce) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  constexpr std::uint32_t all = 3000;
  SpanTable table;
  ASSERT_TRUE(table.create(all));
  Model model{.pages = std::vector<Page>(all, Page::clean), .blocks = {}};
  const auto any_block = [&] { return std::next(model.blocks.begin(), random() % model.blocks.size())->first; };
  for (int step = 0; step < 20'000 && !testing::Test::HasFailure(); ++step) {
    const unsigned what = random() % 10;
    if (what < 5 || model.blocks.empty()) {
      const std::uint32_t alignment = 1u << (random() % 6 == 0 ? random() % 5 : 0);
      const Span span = table.allocate(1 + random() % 200, alignment);
      if (span.pages == 0) continue;
      EXPECT_EQ(span.first % alignment, 0u);
      model.take(span);
    } else if (what < 8) {
      const std::uint32_t first = any_block();
      table.release(first);
      model.give(first);
    } else if (what == 8) {
      const std::uint32_t first = any_block(), had = model.blocks[first];
      if (!table.resize(first, 1 + random() % 200)) continue;
      const std::uint32_t has = table.used_at(first);
      for (std::uint32_t i = has; i < had; ++i) model.pages[first + i] = Page::dirty;
      for (std::uint32_t i = had; i < has; ++i) {
        EXPECT_NE(model.pages[first + i], Page::used);
        model.pages[first + i] = Page::used;
      }
      model.blocks[first] = has;
    } else {
      const Span span = table.take_dirty(1 + random() % 300);
      for (std::uint32_t i = 0; i < span.pages; ++i) {
        EXPECT_EQ(model.pages[span.first + i], Page::dirty);
        model.pages[span.first + i] = Page::clean;
      }
      if (span.pages > 0) table.give_clean(span);
    }
    if (step % 50 == 0) expect_same(table, model);
  }
  expect_same(table, model);
}

}  // namespace
}  // namespace plait::tl
