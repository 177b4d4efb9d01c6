// plait pipeline: what it prints, draws and refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

Outcome pipeline(const std::string& line) { return call_line(pipeline_command(), line); }

Json answer(const std::string& line) {
  const Outcome outcome = pipeline(line + " --json");
  EXPECT_TRUE(outcome.status.ok()) << line << ": " << outcome.status.message();
  return outcome.status.ok() ? Json::parse(outcome.printed) : Json();
}

Json row(const Json& json, const std::string& schedule) {
  for (const Json& one : json["schedules"])
    if (one["schedule"] == schedule) return one;
  ADD_FAILURE() << "no " << schedule;
  return {};
}

// The figures of docs/pipeline.md.
TEST(PipelineCommand, ThePagesCase) {
  const Json json = answer("--stages 4 --micro-batches 8 --communication 0.3");
  EXPECT_EQ(json["stages"], 4);
  EXPECT_EQ(json["micro_batches"], 8);
  EXPECT_EQ(json["backward_seconds"], Json({0.02, 0.02, 0.02, 0.02}));
  EXPECT_EQ(json["weight_seconds"], Json({0.01, 0.01, 0.01, 0.01}));
  EXPECT_DOUBLE_EQ(json["transfer_seconds"], 0.0045);
  EXPECT_EQ(json["one_byte_transfer_seconds"], 0);
  ASSERT_EQ(json["schedules"].size(), 5u);
  EXPECT_EQ(json["schedules"][0]["schedule"], "1f1b-blocking");
  EXPECT_EQ(json["schedules"][0]["faster"], 1.0);
  EXPECT_NEAR(row(json, "1f1b-blocking")["seconds"], 0.4155, 1e-6);
  EXPECT_NEAR(row(json, "1f1b")["seconds"], 0.402, 1e-6);
  const Json eager = row(json, "eager-1f1b");
  EXPECT_NEAR(eager["seconds"], 0.357, 1e-6);
  EXPECT_NEAR(eager["one_byte_seconds"], 0.330, 1e-6);
  EXPECT_NEAR(eager["of_one_byte"], 33 / 35.7, 1e-6);
  EXPECT_NEAR(eager["least_seconds"], 0.357, 1e-6);
  EXPECT_NEAR(eager["faster"], 41.55 / 35.7, 1e-6);
  EXPECT_NEAR(eager["idle"], 1 - 24 / 35.7, 1e-6);
  EXPECT_EQ(eager["peak_activations"], Json({7, 5, 3, 1}));
  EXPECT_EQ(eager["weight_delays"], Json::array());
  const Json delayed = row(json, "eager-1f1b-delayed");
  EXPECT_LT(delayed["seconds"], 0.2838);
  EXPECT_EQ(delayed["weight_delays"].size(), 4u);
  EXPECT_EQ(json["tasks"]["schedule"], "eager-1f1b-delayed");
  EXPECT_EQ(json["tasks"]["stages"][3][0], "RA0");
}

TEST(PipelineCommand, PrintsTheSame) {
  const Outcome outcome = pipeline("--stages 2 --micro-batches 3 --schedule 1f1b --tasks");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words :
       {"2 stages, 3 micro-batches: forward 10.0 ms, backward 20.0 ms (weights 10.0 ms of it), a transfer 4.50 ms (30 "
        "%",
        "1f1b-blocking", "eager-1f1b-delayed", "1f1b: no order of its tasks takes less than",
        "stage 0: F0 SA0 F1 SA1 RG0 B0 F2 SA2 RG1 B1 RG2 B2\n", "stage 1: RA0 F0 B0 SG0 RA1 F1 B1 SG1 RA2 F2 B2 SG2\n"})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  const Outcome one = pipeline("--stages 1 --micro-batches 1");
  ASSERT_TRUE(one.status.ok()) << one.status.message();
  EXPECT_NE(one.printed.find("1 stage, 1 micro-batch: "), std::string::npos) << one.printed;
}

TEST(PipelineCommand, StagesMayDiffer) {
  const Json json =
      answer("--stages 3 --micro-batches 4 --forward 0.01,0.02,0.01 --backward 0.03 --weight 0.01 --communication 0");
  EXPECT_EQ(json["forward_seconds"], Json({0.01, 0.02, 0.01}));
  EXPECT_EQ(json["backward_seconds"], Json({0.03, 0.03, 0.03}));
  // The last stage: 0.03 until it begins, 4 * 0.04 of its own, 0.06 back.
  EXPECT_NEAR(row(json, "eager-1f1b")["least_seconds"], 0.25, 1e-9);
}

TEST(PipelineCommand, BytesTakeTheMachinesTime) {
  TemporaryFolder folder;
  const std::string machine = folder.file("machine.json", R"json({"plait_machine": 1, "name": "lab",
    "levels": [{"name": "node", "latency_seconds": 1e-3, "port_bytes_per_second": 1e6, "network": true},
               {"name": "rank", "latency_seconds": 1e-6}]})json");
  const Json json = answer("--stages 2 --micro-batches 2 --bytes 10K --machine " + machine);
  EXPECT_DOUBLE_EQ(json["transfer_seconds"], 0.01024 + 1e-3);
  EXPECT_DOUBLE_EQ(json["one_byte_transfer_seconds"], 1e-6 + 1e-3);
  const std::string half = folder.file("half.json", R"json({"plait_machine": 1, "name": "lab",
    "levels": [{"name": "node", "latency_seconds": 1e-3, "port_bytes_per_second": 1e6, "network": true, "duplex": "half"},
               {"name": "rank", "latency_seconds": 1e-6}]})json");
  EXPECT_GT(row(answer("--stages 2 --micro-batches 2 --bytes 10K --machine " + half), "1f1b-blocking")["seconds"],
            row(json, "1f1b-blocking")["seconds"]);
}

TEST(PipelineCommand, Draws) {
  TemporaryFolder folder;
  const Outcome outcome =
      pipeline("--stages 4 --micro-batches 8 --schedule eager-1f1b-delayed --svg " + folder.path("p.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const std::string svg = folder.content("p.svg");
  for (const char* words : {"<svg ", "eager-1f1b-delayed: 4 stages, 8 micro-batches", "stage 0", "stage 3", "forward",
                            "backward, of activations", "backward, of weights", "sends activations", "sends gradients",
                            "one byte per transfer: 270 ms", "forward, micro-batch 7: "})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  // Each task is a box with a title: 96 that compute, 48 transfers.
  std::size_t titles = 0;
  for (std::size_t at = svg.find("><title>"); at != std::string::npos; at = svg.find("><title>", at + 1)) ++titles;
  EXPECT_EQ(titles, 4u * 8 * 3 + 3u * 8 * 2);
  const Outcome plain = pipeline("--stages 1 --micro-batches 2 --schedule 1f1b --svg " + folder.path("one.svg"));
  ASSERT_TRUE(plain.status.ok()) << plain.status.message();
  EXPECT_EQ(folder.content("one.svg").find("sends"), std::string::npos);
}

TEST(PipelineCommand, BadInput) {
  expect_refused(pipeline(""), "--stages is required");
  expect_refused(pipeline("--stages 4"), "--micro-batches is required");
  expect_refused(pipeline("--stages 0 --micro-batches 8"), "stages: expected 1 to 1024");
  expect_refused(pipeline("--stages 4 --micro-batches -1"), "micro-batches: expected 1 to 16384");
  expect_refused(pipeline("--stages 4 --micro-batches 99999999999"), "99999999999");
  expect_refused(pipeline("--stages 1000 --micro-batches 1000"), "stages times micro-batches");
  expect_refused(pipeline("--stages four --micro-batches 8"), "four");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --schedule gpipe"), "expected one of 1f1b-blocking, 1f1b,");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --forward 1,2,3"),
                 "--forward: expected one number, or one for");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --forward -1"), "--forward: expected 0 to 1000");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --backward nan"), "--backward: expected 0 to 1000");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --backward 1 --weight 2"), "--weight: expected a part");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --communication -0.1"), "--communication: expected a share");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --communication 100 --forward 300"), "longer than 1000");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --communication 0.3 --bytes 1M"), "--communication");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --bytes 0"), "expected 1 B to 1024 GiB");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --bytes x"), "--bytes");
  expect_refused(pipeline("--stages 4 --micro-batches 8 --bytes 1M --machine abacus"), "abacus");
  expect_refused(pipeline("--stages 4 --micro-batches 1024 --svg /tmp/none.svg"), "--svg: expected at most 2048");
  const Outcome unwritable = pipeline("--stages 2 --micro-batches 2 --svg /nonexistent/p.svg");
  EXPECT_EQ(unwritable.status.code(), Code::unavailable) << unwritable.status.message();
  EXPECT_EQ(unwritable.printed, "");
}

TEST(PipelineCommand, NoTimeAtAll) {
  const Json json = answer("--stages 3 --micro-batches 4 --forward 0");
  EXPECT_EQ(row(json, "eager-1f1b")["seconds"], 0.0);
  EXPECT_EQ(row(json, "eager-1f1b")["of_one_byte"], 1.0);
}

TEST(PipelineCommand, ManyStages) {
  const Json json = answer("--stages 32 --micro-batches 128");
  EXPECT_GT(row(json, "eager-1f1b")["of_one_byte"], 0.9);
}

}  // namespace
}  // namespace plait::tuner
