// Whether it is worth asking where the ranks would better be, and what the report's file holds for that.
#include <gtest/gtest.h>

#include "runtime/report/placement_facts.h"

namespace plait::runtime {
namespace {

// Ranks on nodes of these numbers of ranks, each on a core of its own.
PlacementFacts bound(std::initializer_list<int> nodes) {
  PlacementFacts facts{.ranks = {}, .rows = {}, .accelerated = true};
  int number = 7;
  for (const int count : nodes) {
    for (int core = 0; core < count; ++core) facts.ranks.push_back({number, 0, 0, 0, core, 1});
    --number;
  }
  return facts;
}

PlacementFacts with_row(PlacementFacts facts, const std::string& axes, double bytes = 1024) {
  facts.rows.push_back({axes, Collective::allreduce, 10, bytes});
  return facts;
}

TEST(PlacementFacts, NotWorthAskingOfEvenBoundRanks) {
  EXPECT_FALSE(worth_asking({}));
  EXPECT_FALSE(worth_asking(bound({1})));
  EXPECT_FALSE(worth_asking(bound({4})));
  EXPECT_FALSE(worth_asking(bound({4, 4})));
  EXPECT_FALSE(worth_asking(with_row(bound({4, 4}), "8@1"))) << "all ranks, wherever they are";
  EXPECT_FALSE(worth_asking(with_row(bound({4, 4}), "4@1"))) << "within nodes";
  EXPECT_FALSE(worth_asking(with_row(bound({4, 4}), "2@1,2@1", 0))) << "nothing was moved";
  EXPECT_FALSE(worth_asking(with_row(bound({1, 1, 1, 1}), "2@2"))) << "one rank a node";
  EXPECT_FALSE(worth_asking(with_row(bound({4}), "2@2"))) << "one node";
}

TEST(PlacementFacts, WorthAskingOfRowsThatCrossNodes) {
  EXPECT_TRUE(worth_asking(with_row(bound({4, 4}), "4@2")));
  EXPECT_TRUE(worth_asking(with_row(bound({4, 4}), "2@4,2@1"))) << "one of its axes";
  PlacementFacts facts = with_row(bound({2, 2, 2}), "2@1");
  EXPECT_FALSE(worth_asking(facts));
  std::swap(facts.ranks[3], facts.ranks[5]);  // the last row only
  EXPECT_TRUE(worth_asking(facts));
  facts.accelerated = false;
  EXPECT_TRUE(worth_asking(facts));
}

TEST(PlacementFacts, WorthAskingOfRanksThatMayMove) {
  PlacementFacts facts = bound({4});
  for (PlacementFacts::Rank& rank : facts.ranks) rank.core = -1;
  EXPECT_FALSE(worth_asking(facts)) << "they share one processing unit";
  for (PlacementFacts::Rank& rank : facts.ranks) rank.cores_allowed = 4;
  EXPECT_TRUE(worth_asking(facts));
  facts.accelerated = false;
  EXPECT_FALSE(worth_asking(facts)) << "nothing of ours would be faster";
}

TEST(PlacementFacts, WorthAskingOfUnevenParts) {
  EXPECT_TRUE(worth_asking(bound({1, 3})));
  for (int PlacementFacts::Rank::*part :
       {&PlacementFacts::Rank::package, &PlacementFacts::Rank::numa, &PlacementFacts::Rank::l3}) {
    PlacementFacts facts = bound({4, 4});
    facts.ranks[0].*part = 1;
    EXPECT_TRUE(worth_asking(facts));
    facts.ranks[1].*part = facts.ranks[4].*part = facts.ranks[5].*part = 1;
    EXPECT_FALSE(worth_asking(facts));
  }
}

TEST(PlacementFacts, TheFileHoldsThem) {
  PlacementFacts facts = with_row(bound({1, 2}), "2@1", 4096);
  facts.network_seconds_per_byte = 8e-9;
  facts.ranks_per_core = 4;
  const SortedJson json = placement_json(facts);
  EXPECT_EQ(json["ranks"].dump(), "[[7,0,0,0,0,1],[6,0,0,0,0,1],[6,0,0,0,1,1]]");
  EXPECT_EQ(json["rows"].dump(), R"([{"axes":"2@1","bytes":4096.0,"calls":10.0,"collective":"allreduce"}])");
  EXPECT_EQ(json["network_seconds_per_byte"], 8e-9);
  EXPECT_EQ(json["ranks_per_core"], 4);
  EXPECT_EQ(placement_json({})["ranks"].dump(), "[]");
}

TEST(PlacementFacts, TheQuestionNamesTheCommand) {
  EXPECT_NE(placement_question("out/report.json").find("`plait advise out/report.json`"), std::string::npos);
  EXPECT_NE(placement_question("").find("`plait advise FILE.json` of a run with PLAIT_REPORT=FILE.json"),
            std::string::npos);
}

}  // namespace
}  // namespace plait::runtime
