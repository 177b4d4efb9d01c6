// plait simulate fused: what it prints, and each bad input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

constexpr const char* small = "--batch 64 --tables 8 --torus 4x4";

Outcome simulate_fused_line(const std::string& line) { return call_line(simulate_command(), "fused " + line); }

TEST(SimulateFused, PrintsATableAndTheMean) {
  const Outcome outcome = simulate_fused_line("--batch 64,128 --tables 8,16 --torus 4x4");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"16 nodes, 4x4 torus; dim 92, pooling 70, MLP 43 x 682", "by kernels", "on average "})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  EXPECT_NE(simulate_fused_line("--batch 64 --tables 8 --nodes 8").printed.find("8 nodes, full crossbar"),
            std::string::npos);
}

TEST(SimulateFused, AsJsonItHasTheSameFigures) {
  const Json json = Json::parse(simulate_fused_line("--batch 64,128 --tables 8 --torus 4x4 --json").printed);
  EXPECT_EQ(json["nodes"], 16);
  ASSERT_EQ(json["points"].size(), 2u);
  double sum = 0;
  for (const Json& point : json["points"]) {
    const double plain = point["kernel_by_kernel_seconds"]["total"], fused = point["fused_seconds"]["total"];
    EXPECT_NEAR(point["less"].get<double>(), 1 - fused / plain, 1e-9);
    sum += point["less"].get<double>();
  }
  EXPECT_NEAR(json["mean_less"].get<double>(), sum / 2, 1e-9);
}

TEST(SimulateFused, TheMachinesLinksCount) {
  const TemporaryFolder folder;
  const auto machine = [&](const char* rate) {
    return folder.file(rate, std::string(R"({"plait_machine": 1, "name": "x", "levels": [
        {"name": "node", "latency_seconds": 7e-7, "overhead_seconds": 3e-7, "port_bytes_per_second": )") +
                                 rate + R"(, "network": true},
        {"name": "rank", "latency_seconds": 8e-7, "overhead_seconds": 5e-8, "cpu_seconds_per_byte": 1e-12}],
        "reduce_bytes_per_second": 1e12, "copy_bytes_per_second": 1e12})");
  };
  const auto exchange = [&](const char* rate) {
    const Json json =
        Json::parse(simulate_fused_line(std::string(small) + " --json --machine " + machine(rate)).printed);
    return json["points"][0]["all_to_all_seconds"].get<double>();
  };
  EXPECT_GT(exchange("1000000000"), 5 * exchange("10000000000"));
}

TEST(SimulateFused, RefusesWhatIsNoSystem) {
  const std::string start = std::string(small) + " ";
  expect_refused(simulate_fused_line("--torus 4"), "--torus \"4\": expected columns x rows");
  expect_refused(simulate_fused_line("--torus 1x16"), "--torus \"1x16\"");
  expect_refused(simulate_fused_line("--torus 64x64"), "1024 nodes at most");
  expect_refused(simulate_fused_line("--nodes 1"), "--nodes: 1: expected 2 to 1024");
  expect_refused(simulate_fused_line("--batch 100"), "--batch: 100: expected a multiple of the 128 nodes");
  expect_refused(simulate_fused_line("--batch 128,x"), "--batch: \"x\": expected a number");
  expect_refused(simulate_fused_line("--tables 0"), "--tables: \"0\": expected a number from 1");
  expect_refused(simulate_fused_line(start + "--memory fast"), "--memory: ");
  expect_refused(simulate_fused_line(start + "--bottom-layers 99"), "--bottom-layers: 99: expected 0 to 43");
  expect_refused(simulate_fused_line(start + "--flops 0"), "--flops: 0: expected");
  expect_refused(simulate_fused_line(start + "--machine /nowhere/m.json"), "/nowhere/m.json");
}

}  // namespace
}  // namespace plait::tuner
