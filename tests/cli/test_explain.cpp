// plait explain: what it prints, and each bad input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command_call.h"
#include "tuner/command.h"

namespace plait {
namespace {

using Json = nlohmann::json;

Outcome explain(std::vector<std::string> arguments) { return call(explain_command(), std::move(arguments)); }

class Explain : public testing::Test {
 protected:
  std::string file(const char* name, const std::string& text) const { return folder_.file(name, text); }

  TemporaryFolder folder_;
};

TEST_F(Explain, ShowsCandidatesAndTheirShares) {
  const Outcome outcome = explain({"allreduce", "4M", "--shape", "4x2"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"allreduce of 4 MiB on 4x2, 8 ranks, machine default", "predicted", "node alpha",
                            "node beta", "choice: ", "the cheapest by the model"})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
}

TEST_F(Explain, JsonHasTheCheapestFirstAndSharesThatAddUp) {
  const Outcome outcome = explain({"bcast", "64K", "--shape", "2x4", "--json", "--plans", "4"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json json = Json::parse(outcome.printed);
  ASSERT_GE(json["plans"].size(), 2u);
  EXPECT_EQ(json["choice"], json["plans"][0]["plan"]);
  double before = 0;
  for (const Json& plan : json["plans"]) {
    EXPECT_GE(plan["seconds"], before);
    before = plan["seconds"];
    double sum = plan["waiting_seconds"];
    for (const Json& share : plan["shares"]) sum += share["seconds"].get<double>();
    EXPECT_NEAR(sum / before, 1, 1e-3);
  }
}

TEST_F(Explain, TheTableDecides) {
  const std::string table = file("table.json", R"json({"plait_table": 1, "machine": "lab", "shapes": [{"shape": "4x2",
    "collectives": [{"collective": "allreduce", "ranges": [{"from": 1, "to": 65536, "plan": "AR.12(ring) x1",
    "seconds_from": 1e-5, "seconds_to": 1e-4}]}]}]})json");
  const Outcome inside = explain({"allreduce", "8K", "--shape", "4x2", "--table", table});
  ASSERT_TRUE(inside.status.ok()) << inside.status.message();
  EXPECT_NE(inside.printed.find("choice: AR.12(ring) x1: the table has it for 1 B to"), std::string::npos)
      << inside.printed;
  const Outcome outside = explain({"allreduce", "1M", "--shape", "4x2", "--table", table});
  EXPECT_NE(outside.printed.find("the table says nothing of this call"), std::string::npos) << outside.printed;
}

TEST_F(Explain, AHostThatWasMeasuredTakesPart) {
  const std::string machine = file("machine.json", R"json({"plait_machine": 1, "name": "lab",
    "levels": [{"name": "node", "latency_seconds": 15e-6, "port_bytes_per_second": 1.2e9, "network": true},
               {"name": "rank", "latency_seconds": 1e-6, "cpu_seconds_per_byte": 1e-10}],
    "host": {"allreduce": [{"bytes": 8, "seconds": 1e-7}, {"bytes": 4096, "seconds": 2e-7}]},
    "fingerprint": {"shape": "4x2"}})json");
  const Outcome here = explain({"allreduce", "1K", "--shape", "4x2", "--machine", machine});
  ASSERT_TRUE(here.status.ok()) << here.status.message();
  EXPECT_NE(here.printed.find("choice: host: it was measured to be faster"), std::string::npos) << here.printed;
  for (const auto& other : {std::vector<std::string>{"allreduce", "1M", "--shape", "4x2", "--machine", machine},
                            {"allreduce", "1K", "--shape", "2x2", "--machine", machine}})
    EXPECT_EQ(explain(other).printed.find("host"), std::string::npos);
}

TEST_F(Explain, EachBadInputIsOneLine) {
  const std::string broken = file("broken.json", "{\"plait_table\": 1,");
  const std::vector<std::vector<std::string>> inputs = {
      {"frob", "8", "--shape", "4x2"},
      {"alltoallv", "8", "--shape", "4x2"},
      {"allreduce", "--shape", "4x2"},
      {"allreduce", "0", "--shape", "4x2"},
      {"allreduce", "-3", "--shape", "4x2"},
      {"allreduce", "9999999999G", "--shape", "4x2"},
      {"barrier", "8", "--shape", "4x2"},
      {"allreduce", "8", "--shape", "4x"},
      {"allreduce", "8", "--shape", "1x1"},
      {"allreduce", "8", "--shape", "4x2", "--plans", "0"},
      {"allreduce", "8", "--shape", "4x2", "--machine", "/nowhere/machine.json"},
      {"allreduce", "8", "--shape", "4x2", "--table", "/nowhere/table.json"},
      {"allreduce", "8", "--shape", "4x2", "--table", broken}};
  for (const auto& input : inputs) {
    const Outcome outcome = explain(input);
    EXPECT_EQ(outcome.status.code(), Code::invalid) << input[0] << " " << input[1];
    EXPECT_FALSE(outcome.status.message().empty());
    EXPECT_EQ(outcome.status.message().find('\n'), std::string::npos) << outcome.status.message();
    EXPECT_EQ(outcome.printed, "");
  }
}

}  // namespace
}  // namespace plait
