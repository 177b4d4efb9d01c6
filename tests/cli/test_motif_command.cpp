// plait motif: what it prints and draws, and each bad input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "plan/model/machine.h"
#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

Outcome motif(const std::string& line) { return call_line(motif_command(), line); }

std::string machine_of_two_rails() {
  plan::Machine machine = plan::default_machine();
  for (plan::LinkLevel& level : machine.levels)
    if (level.network) level.rails = 2;
  return plan::machine_json(machine);
}

TEST(MotifCommand, ListsRewritingsTheQuickestFirst) {
  const Outcome outcome = motif("allreduce --bytes 64M --system 4,2 --depth 1 --json");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json json = Json::parse(outcome.printed);
  EXPECT_EQ(json["ranks"], 8);
  EXPECT_EQ(json["bytes"], 64 << 20);
  double before = 0;
  std::string rules;
  for (const Json& rewriting : json["rewritings"]) {
    EXPECT_GE(rewriting["seconds"], before);
    before = rewriting["seconds"];
    rules += rewriting["rules"].get<std::string>() + " ";
  }
  for (const char* one : {"segment:2", "segment:8", "ring", "tree:2", "tree:4"})
    EXPECT_NE(rules.find(one), std::string::npos) << one << " in " << rules;
}

TEST(MotifCommand, ShowsOneMotifByMotif) {
  const Outcome outcome = motif("allreduce --bytes 1M --system 2,2 --rules tree:2");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"RD(0:1, 2,3)^2", "AR(0:1, 0,2)", "BC(0:1, 0,1)^0", "predicted, proven"})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
}

// Three of four segments over one of two rails take three times as long as the fourth over the other, but for
// latencies.
TEST(MotifCommand, SegmentsGoOverTheRailsThatTheyAreGiven) {
  const TemporaryFolder folder;
  const std::string machine = folder.file("machine.json", machine_of_two_rails());
  const Outcome outcome = motif(
      "allreduce --bytes 256M --system 4,1 --rules segment:4 --rails 0,0,0,1 --json "
      "--machine " +
      machine);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json motifs = Json::parse(outcome.printed)["rewritings"][0]["motifs"];
  ASSERT_EQ(motifs.size(), 4u);
  EXPECT_EQ(motifs[3]["rail"], 1);
  EXPECT_NEAR(motifs[2]["end"].get<double>() / motifs[3]["end"].get<double>(), 3, 0.05);
}

TEST(MotifCommand, DrawsThem) {
  const TemporaryFolder folder;
  const Outcome outcome = motif("alltoall --bytes 64K --system 4,2 --rules spline:4 --svg " + folder.path("m.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const std::string picture = folder.content("m.svg");
  EXPECT_NE(picture.find("<svg"), std::string::npos);
  EXPECT_NE(picture.find("AA(0:1, 0-7)+2:4"), std::string::npos);
}

TEST(MotifCommand, RefusesWhatItCannotUse) {
  expect_refused(motif("scan --system 4,2"), "scan is no motif");
  expect_refused(motif("nonsense --system 4,2"), "\"nonsense\": ");
  expect_refused(motif("allreduce --system 1"), "--system \"1\": expected 2 to 256 ranks");
  expect_refused(motif("allreduce --system 1000,1000"), "--system");
  expect_refused(motif("allreduce --system 4,2 --bytes x"), "--bytes \"x\"");
  expect_refused(motif("allreduce --system 4,2 --bytes 0"), "--bytes \"0\"");
  expect_refused(motif("allreduce --system 4,2 --depth 9"), "--depth 9: expected 0 to 3");
  expect_refused(motif("allreduce --system 4,2 --rules tree:3"), "it fits none of the motifs");
  expect_refused(motif("allreduce --system 4,2 --rules cut:3"), "--rules: rule \"cut:3\"");
  expect_refused(motif("allreduce --system 4,2 --rails 0,1"), "--rails 1: the machine has 1 rail");
  expect_refused(motif("bcast --system 4,2 --root 8"), "--root 8: expected a rank from 0 to 7");
  expect_refused(motif("bcast --system 4,2 --root -1"), "--root -1");
  expect_refused(motif("allreduce --system 4,0"), "--system \"4,0\"");
  expect_refused(motif("allreduce --system 4,-2"), "--system \"4,-2\"");
  EXPECT_FALSE(motif("allreduce --system 4,2 --svg /nowhere/m.svg").status.ok());
}

}  // namespace
}  // namespace plait::tuner
