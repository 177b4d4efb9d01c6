// plait overlap plan and plait simulate train: what they print and write, and each bad input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "plan/overlap/layers.h"
#include "plan/overlap/overlap_plan.h"
#include "tests/cli/command_call.h"
#include "topo/discovery.h"
#include "tuner/commands/command.h"
#include "tuner/picture/scale_picture.h"
#include "tuner/text/layer.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

constexpr const char* small_layers = R"json({"plait_layers": 1, "model": "net", "layers": [
  {"name": "fc", "bytes": 40000000, "seconds": 0.01}, {"name": "conv3", "bytes": 8000000, "seconds": 0.02},
  {"name": "conv2", "bytes": 4000000, "seconds": 0.03}, {"name": "conv1", "bytes": 400000, "seconds": 0.02}]})json";

std::string contention(const std::string& fingerprint = "") {
  return R"json({"plait_contention": 1, "machine": "lab", )json" + fingerprint +
         R"json("kernel": "mixed", "nodes": 4, "ranks": 4, "latency_seconds": 1e-5, "table": [
  {"threads": 1, "duty": 0.1, "slowdown": 1.05, "overlapped_rate": 1e9, "alone_rate": 2e9},
  {"threads": 1, "duty": 0.5, "slowdown": 1.3, "overlapped_rate": 2e9, "alone_rate": 2.5e9}]})json";
}

class Overlap : public testing::Test {
 protected:
  std::string layers(const std::string& text = small_layers) const { return folder_.file("layers.json", text); }
  std::string measured(const std::string& text = contention()) const { return folder_.file("contention.json", text); }
  Outcome plan(const std::string& more = "") const {
    return call_line(overlap_command(), "plan --layers " + layers() + " --contention " + measured() + more);
  }
  Outcome simulate(const std::string& more = "") const {
    return call_line(simulate_command(), "train --layers " + layers() + " --contention " + measured() + more);
  }

  TemporaryFolder folder_;
};

TEST_F(Overlap, PlanIsPrintedAndWritten) {
  const Outcome outcome = plan(" -o " + folder_.path("overlap.json"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"net: 4 reductions", "LIBRA ", "LIBRA-M", "SE ", "WFBP", "25 MB buckets", "MG-WFBP",
                            "best, 1 x", "a library's, 1 x 0.5", "1 + (L - 1)/Z", "the plan: "})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  const auto written = read_overlap_plan(folder_.path("overlap.json"));
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written->model, "net");
  EXPECT_EQ(written->calls.size(), 4u);
  EXPECT_GE(written->backward_seconds, 0.08);
}

TEST_F(Overlap, JsonHasAllWaysAndTheBound) {
  const Outcome outcome = plan(" --json --groups 3 --chunks 50");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json json = Json::parse(outcome.printed);
  EXPECT_DOUBLE_EQ(json["guarantee"].get<double>(), 1 + 3. / 50);
  ASSERT_EQ(json["solutions"].size(), 12u);
  const double libra = json["solutions"][0]["backward_seconds"];
  EXPECT_LE(libra, json["solutions"][0]["chunked_seconds"].get<double>() * (1 + 1e-9));
  EXPECT_LE(json["solutions"][0]["groups"].size(), 3u);
  for (const Json& solution : json["solutions"])
    EXPECT_GE(solution["backward_seconds"].get<double>() * json["guarantee"].get<double>(), libra);
}

TEST_F(Overlap, OneShareLeavesTheGroupsAndGivenGroupsLeaveTheShares) {
  const Outcome fixed = plan(" --shares 1x0.1 --json");
  ASSERT_TRUE(fixed.status.ok()) << fixed.status.message();
  const Json solutions = Json::parse(fixed.printed)["solutions"];
  for (const Json& group : solutions[0]["groups"]) EXPECT_EQ(group["duty"], 0.1);
  const std::string given = folder_.file("given.json", R"json({"plait_overlap": 1, "model": "net", "calls": [
    {"bytes": 1, "layer": "a"}, {"bytes": 1, "layer": "b"}, {"bytes": 1, "layer": "c"}, {"bytes": 1, "layer": "d"}],
    "groups": [{"calls": 3}, {"calls": 1}]})json");
  const Outcome kept = plan(" --given-groups " + given + " -o " + folder_.path("kept.json"));
  ASSERT_TRUE(kept.status.ok()) << kept.status.message();
  const auto written = read_overlap_plan(folder_.path("kept.json"));
  ASSERT_TRUE(written.ok());
  ASSERT_EQ(written->groups.size(), 2u);
  EXPECT_EQ(written->groups[0].calls, 3u);
}

TEST_F(Overlap, OtherNodesHaveOtherStartUps) {
  double before = 0;
  for (const char* reduction : {"plan", "ring"}) {
    before = 0;
    for (const char* nodes : {"4", "64", "1024"}) {
      const Outcome outcome = plan(std::string(" --json --reduction ") + reduction + " --nodes " + nodes);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
      const double seconds = Json::parse(outcome.printed)["solutions"][0]["backward_seconds"];
      EXPECT_GT(seconds, before) << reduction << " on " << nodes;
      before = seconds;
    }
  }
  expect_refused(plan(" --nodes -2"), "--nodes: expected 1 to");
}

TEST_F(Overlap, BadInputIsRefusedWithTheReason) {
  const auto with_layers = [&](const std::string& text) {
    return call_line(overlap_command(), "plan --layers " + layers(text) + " --contention " + measured());
  };
  const std::string text = small_layers;
  expect_refused(with_layers(std::string(text).replace(text.find("0.02"), 4, "-0.2")),
                 "layers[1].seconds: expected a number of seconds, 0 or more");
  expect_refused(with_layers(std::string(text).replace(text.find("0.02"), 4, "NaN")), "expected JSON");
  expect_refused(with_layers(R"({"plait_layers": 1, "model": "net", "layers": []})"), "layers: expected a list");
  layers();
  expect_refused(plan(" --groups 0"), "--groups: expected a whole number from 1");
  expect_refused(plan(" --chunks 0"), "--chunks: expected a whole number from 1");
  expect_refused(plan(" --shares 1x2"), "--shares: \"1x2\": expected threads x duty");
  expect_refused(plan(" --shares 1x0.3"), "no row for the share 1 x 0.3");
  expect_refused(plan(" --reduction tree"), "--reduction: \"tree\": expected plan or ring");
  expect_refused(plan(" --computation -1"), "--computation: expected a positive number");
  expect_refused(plan(" --bytes-factor 0"), "--bytes-factor: expected a positive number");
  expect_refused(plan(" --machine nowhere.json"), "nowhere.json");
  expect_refused(plan(" --given-groups " + folder_.path("none")), "--given-groups");
  expect_refused(call_line(overlap_command(), "plan --layers " + folder_.path("none") + " --contention x"), "--layers");
  expect_refused(call_line(overlap_command(), "plan --contention x"), "--layers is required");
}

TEST_F(Overlap, AnotherMachinesContentionIsRefused) {
  const auto planned_with = [&](const std::string& hardware, const std::string& more = "") {
    const std::string fingerprint = "\"fingerprint\": {\"hardware\": " + Json(hardware).dump() + "}, ";
    return call_line(overlap_command(),
                     "plan --layers " + layers() + " --contention " + measured(contention(fingerprint)) + more);
  };
  expect_refused(planned_with("an abacus"), "it is another machine's: hardware is \"an abacus\" there");
  EXPECT_TRUE(planned_with(describe_processors()).status.ok());
  EXPECT_TRUE(planned_with("an abacus", " --machine default").status.ok());
}

TEST_F(Overlap, MeasureWantsAJob) {
  expect_refused(call_line(overlap_command(), "measure -o x.json"), "expected a job of two or more ranks");
  expect_refused(call_line(overlap_command(), "measure -o x.json --kernel idle"), "--kernel: \"idle\": expected");
  expect_refused(call_line(overlap_command(), "measure -o x.json --bytes 1"), "--bytes: \"1\": expected");
  expect_refused(call_line(overlap_command(), "measure -o x.json --g4 -1"), "--g4: \"-1\": expected");
  expect_refused(call_line(overlap_command(), "measure -o x.json --repeats 0"), "--repeats: expected");
}

TEST_F(Overlap, SimulationScalesAndDraws) {
  const Outcome outcome = simulate(" --nodes 16..64 --json --svg " + folder_.path("scale.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json points = Json::parse(outcome.printed)["models"][0]["points"];
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2]["nodes"], 64);
  double before = 1;
  for (const Json& point : points) {
    const double throughput = point["solutions"][0]["throughput"];
    EXPECT_LT(throughput, before) << "a ring's start-up grows";
    before = throughput;
  }
  const std::string svg = folder_.content("scale.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("LIBRA-M"), std::string::npos);
  const Outcome text = simulate(" --nodes 4,8 --reduction plan");
  ASSERT_TRUE(text.status.ok()) << text.status.message();
  EXPECT_NE(text.printed.find("LIBRA over the best"), std::string::npos) << text.printed;
}

TEST_F(Overlap, SimulationRefusesBadInput) {
  expect_refused(simulate(" --nodes 64..16"), "--nodes: \"64..16\": expected ascending");
  expect_refused(simulate(" --nodes 1"), "--nodes: \"1\": expected 2");
  expect_refused(simulate(" --nodes 8,4"), "--nodes: \"8,4\": expected ascending");
  expect_refused(simulate(" --nodes many"), "--nodes: \"many\": expected 2");
  expect_refused(simulate(" --forward -1"), "--forward: expected");
  expect_refused(simulate(" --reduction x"), "--reduction: \"x\": expected plan or ring");
  expect_refused(simulate(" --groups 0"), "--groups: expected");
}

TEST(ScalePicture, EscapesWhatItIsTold) {
  const ScalePicture picture{
      .title = "a < b", .subtitle = "", .axis = "", .nodes = {2, 4}, .panels = {{"p & q", {{"\"c\"", {1, 0.5}}}}}};
  const std::string svg = scale_svg(picture);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("p &amp; q"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace plait::tuner
