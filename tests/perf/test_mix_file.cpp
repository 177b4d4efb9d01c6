#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "perf/mix_file.h"

namespace plait::perf {
namespace {

std::string refusal(const std::string& text) {
  const auto mix = parse_mix(text);
  return mix.ok() ? "" : mix.status().message();
}

TEST(MixFile, HasANameASeedAndCalls) {
  const auto mix =
      parse_mix("# a program\nname two words # of it\n\nseed 7\n 3 allreduce 1K\r\n1 barrier\n2 alltoallv 9");
  ASSERT_TRUE(mix.ok()) << mix.status().message();
  EXPECT_EQ(mix->name, "two words");
  EXPECT_EQ(mix->seed, 7u);
  ASSERT_EQ(mix->kinds.size(), 3u);
  EXPECT_EQ(mix->kinds[0].calls, 3);
  EXPECT_EQ(mix->kinds[0].collective, Collective::allreduce);
  EXPECT_EQ(mix->kinds[0].bytes, 1024u);
  EXPECT_EQ(mix->kinds[0].label(), "allreduce of 1 KiB");
  EXPECT_EQ(mix->kinds[1].label(), "barrier");
  EXPECT_TRUE(mix->kinds[2].alltoallv);
  EXPECT_EQ(mix->kinds[2].label(), "alltoallv of 9 B");
}

TEST(MixFile, ABadLineIsNamed) {
  EXPECT_EQ(refusal("seed 1\n\nfrob\n"),
            "line 3: \"frob\": expected name, seed, or a number of calls from 1 to 10000000");
  EXPECT_EQ(refusal("seed x"), "line 1: \"x\": expected a whole number");
  EXPECT_EQ(refusal("seed -1"), "line 1: \"-1\": expected a whole number");
  EXPECT_EQ(refusal("1 frob 8"), "line 1: \"frob\": expected a collective, such as allreduce, or alltoallv");
  EXPECT_EQ(refusal("1 barrier 8"), "line 1: \"8\": expected no size for barrier");
  EXPECT_EQ(refusal("1 bcast 8 8"), "line 1: \"8\": expected the end of the line");
  EXPECT_EQ(refusal("1 bcast 0"), "line 1: \"0\": expected at least one byte");
  for (const char* bad : {"", "name", "name x\n", "0 bcast 8", "-1 bcast 8", "10000001 bcast 8", "1 bcast", "1 bcast x",
                          "99999999999999999999 bcast 8", "1"}) {
    EXPECT_NE(refusal(bad), "") << bad;
  }
}

TEST(MixFile, TheOrderHasAllCallsAndFollowsFromTheSeed) {
  Mix mix = *parse_mix("seed 1\n1000 bcast 8\n10 barrier\n1 allreduce 8\n");
  const auto order = call_order(mix);
  ASSERT_EQ(order.size(), 1011u);
  EXPECT_EQ(std::count(order.begin(), order.end(), 0), 1000);
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 10);
  EXPECT_EQ(std::count(order.begin(), order.end(), 2), 1);
  EXPECT_EQ(order, call_order(mix));
  // Interleaved: the barriers are neither all first nor all last.
  const auto first = std::find(order.begin(), order.end(), 1) - order.begin();
  const auto last = order.rend() - std::find(order.rbegin(), order.rend(), 1) - 1;
  EXPECT_GT(last - first, 100);
  mix.seed = 2;
  EXPECT_NE(order, call_order(mix));
}

TEST(MixFile, ShorteningKeepsEachKind) {
  const Mix mix = shortened(*parse_mix("100 bcast 8\n3 barrier\n"), 10);
  EXPECT_EQ(mix.kinds[0].calls, 10);
  EXPECT_EQ(mix.kinds[1].calls, 1);
}

TEST(MixFile, TheMixesOfTheRepositoryAreRight) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLAIT_MIXES)) {
    std::ifstream file(entry.path());
    const auto mix = parse_mix(std::string((std::istreambuf_iterator<char>(file)), {}));
    EXPECT_TRUE(mix.ok()) << entry.path() << ": " << (mix.ok() ? "" : mix.status().message());
    EXPECT_FALSE(mix.ok() && mix->name.empty()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace plait::perf
