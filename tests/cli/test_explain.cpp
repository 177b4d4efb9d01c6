// plait explain: what it prints, and each bad input.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
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

// Of a plan's spellings that take the same time one stands for all; each line says what it loses to the first.
TEST_F(Explain, ShowsPlansThatDiffer) {
  for (const char* size : {"8", "1M"}) {
    const Outcome outcome = explain({"allreduce", size, "--shape", "4x2", "--json"});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
    const Json json = Json::parse(outcome.printed);
    ASSERT_EQ(json["plans"].size(), 5u);
    EXPECT_GT(json["plans"][0]["same_time"], 0);
    EXPECT_EQ(json["plans"][0]["loses"], 0.0);
    for (std::size_t i = 1; i < json["plans"].size(); ++i) {
      const Json &before = json["plans"][i - 1], &plan = json["plans"][i];
      EXPECT_GE(plan["loses"], before["loses"]);
      EXPECT_NE(plan["shares"], before["shares"]) << plan["plan"] << " is " << before["plan"];
    }
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

TEST_F(Explain, DrawsTheChoice) {
  const std::string svg = folder_.path("plan.svg");
  const Outcome outcome = explain({"allreduce", "4M", "--shape", "4x2", "--svg", svg});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const std::string text = folder_.content("plan.svg");
  for (const char* words : {"<svg ", "allreduce of 4 MiB on 4x2", "machine default, 8 ranks", ">rank 7</text>",
                            "node 3 port", "limit 5.24 ms: 6 MiB through the busiest node&#39;s port"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
}

TEST_F(Explain, APlanOnRailsIsPricedAndDrawn) {
  const std::string machine = file("machine.json", R"json({"plait_machine": 1, "name": "lab",
    "levels": [{"name": "node", "latency_seconds": 15e-6, "port_bytes_per_second": 1.2e9, "network": true, "rails": 2},
               {"name": "rank", "latency_seconds": 1e-6, "cpu_seconds_per_byte": 1e-10}]})json");
  const std::string table = file("table.json", R"json({"plait_table": 1, "machine": "lab", "shapes": [{"shape": "4x1",
    "collectives": [{"collective": "allreduce", "ranges": [{"from": 1, "to": 1073741825,
    "plan": "AR.1(ring) x4 @0,1"}]}]}]})json");
  const std::string svg = folder_.path("plan.svg");
  const Outcome outcome =
      explain({"allreduce", "4M", "--shape", "4x1", "--machine", machine, "--table", table, "--svg", svg});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_NE(outcome.printed.find("in the table"), std::string::npos) << outcome.printed;
  const std::string text = folder_.content("plan.svg");
  EXPECT_NE(text.find("node 3 rail 1"), std::string::npos);
}

constexpr const char* measured_run = R"json({"traceEvents":[
{"name":"thread_name","ph":"M","pid":0,"tid":256,"args":{"name":"MPI_COMM_WORLD, 2 ranks"}},
{"name":"allreduce","ph":"X","pid":0,"tid":256,"ts":10.5,"dur":100,"args":{"bytes":4096,"plan":"AR.1(shared)"}},
{"name":"shm_collective","ph":"X","pid":0,"tid":257,"ts":11,"dur":99,"args":{"call":1,"step":0,"bytes":4096}},
{"name":"thread_name","ph":"M","pid":1,"tid":256,"args":{"name":"MPI_COMM_WORLD, 2 ranks"}},
{"name":"allreduce","ph":"X","pid":1,"tid":256,"ts":11.5,"dur":90,"args":{"bytes":4096,"plan":"AR.1(shared)"}}
]})json";

TEST_F(Explain, ComparesWithAMeasuredRun) {
  const std::string trace = file("trace.json", measured_run);
  const std::string svg = folder_.path("plan.svg");
  const Outcome outcome = explain({"allreduce", "4K", "--shape", "1x2", "--trace", trace, "--svg", svg});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"measured: 100 us, the middle one of 1 such call in MPI_COMM_WORLD, 2 ranks",
                            "within nodes", "shm_collective 49.5 us", "they differ most: "})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  const std::string text = folder_.content("plan.svg");
  EXPECT_LT(text.find("predicted: "), text.find("measured: 100 us on the slowest rank"));
  const Json json = Json::parse(explain({"allreduce", "4K", "--shape", "1x2", "--trace", trace, "--json"}).printed);
  EXPECT_EQ(json["measured"]["plan"], "AR.1(shared)");
  EXPECT_NEAR(json["measured"]["measured_seconds"], 1e-4, 1e-12);
  EXPECT_EQ(json["measured"]["parts"][0]["part"], "within nodes");
}

// Two ranks, three runs of an embedding of 100, 300 and 200 us: in each a tile, a slice, a wait and a task; rank 1's
// message is under way for 40 us, of which its worker computes in 10.
std::string fused_trace() {
  std::string events;
  const auto add = [&](const std::string& event) { events += (events.empty() ? "{" : ",\n{") + event + "}"; };
  const auto name = [&](int rank, int row, const std::string& text) {
    add(R"("name":"thread_name","ph":"M","cat":"fused","pid":)" + std::to_string(rank) + R"(,"tid":)" +
        std::to_string(row) + R"(,"args":{"name":")" + text + R"("})");
  };
  const auto span = [&](int rank, int row, const char* kind, double begin, double length,
                        const std::string& arguments) {
    add(R"("name":")" + std::string(kind) + R"(","ph":"X","cat":"fused","pid":)" + std::to_string(rank) + R"(,"tid":)" +
        std::to_string(row) + R"(,"ts":)" + std::to_string(begin) + R"(,"dur":)" + std::to_string(length) +
        R"(,"args":{)" + arguments + "}");
  };
  for (int rank = 0; rank < 2; ++rank) {
    name(rank, 256, "fused embedding, 2 ranks");
    name(rank, 257, "worker 0");
    double begin = 1000;
    for (int run = 1; run <= 3; ++run, begin += 1000) {
      const std::string of = R"("run":)" + std::to_string(run);
      span(rank, 256, "run", begin, run == 1 ? 100 : run == 2 ? 300 : 200, of);
      span(rank, 257, "tile", begin + 10, 50, of + R"(,"peer":1)");
      span(rank, 257, "send", begin + 60, 5, of + R"(,"bytes":4096,"peer":1)");
      span(rank, 257, "wait", begin + 65, 15, of);
      span(rank, 257, "task", begin + 80, 10, of);
      if (rank == 1) span(rank, 258, "message", begin + 65, 40, of + R"(,"bytes":4096,"peer":0)");
    }
    name(rank, 512, "fused gemv, 2 ranks");
  }
  return "{\"traceEvents\":[\n" + events + "\n]}";
}

TEST_F(Explain, ShowsTheWorkersOfAFusedRun) {
  const std::string trace = file("fused.json", fused_trace());
  const std::string svg = folder_.path("lanes.svg");
  const Outcome outcome = explain({"fused", "embedding", "--trace", trace, "--svg", svg});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"fused embedding, 2 ranks: 200 us on the slowest rank, the middle one of 3 runs", "30.0 %",
                            "2.5 %", "7.5 %", "60.0 %", "40.0 us", "25.0 %"})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  const std::string text = folder_.content("lanes.svg");
  for (const char* words : {"rank 0 worker 0", "rank 1 worker 0", "rank 1 messages", "a message is under way"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
  const Json json = Json::parse(explain({"fused", "--trace", trace, "--json"}).printed);
  EXPECT_EQ(json["runs"], 3);
  EXPECT_NEAR(json["ranks"][1]["hidden_seconds"], 10e-6, 1e-12);
  EXPECT_NEAR(json["ranks"][0]["computing_seconds"], 60e-6, 1e-12);
}

TEST_F(Explain, AFusedRunThatIsNotThereIsToldWithWhatIs) {
  const std::string trace = file("fused.json", fused_trace());
  EXPECT_NE(explain({"fused", "gemm", "--trace", trace})
                .status.message()
                .find("no run of a fused gemm; it has embedding, gemv"),
            std::string::npos);
  EXPECT_EQ(explain({"fused"}).status.message(), "--trace: expected a file of PLAIT_TRACE");
  const std::string calls = file("trace.json", measured_run);
  EXPECT_NE(explain({"fused", "--trace", calls}).status.message().find("it has none at all"), std::string::npos);
  // Plans are no communicators.
  EXPECT_NE(explain({"allreduce", "4K", "--shape", "1x2", "--trace", trace}).status.message().find("no calls at all"),
            std::string::npos);
}

TEST_F(Explain, ABadTraceLeavesNothingWritten) {
  const std::string broken = file("trace.json", std::string(measured_run).substr(0, 300));
  const std::string large = file("large.json", "{");
  std::filesystem::resize_file(large, std::uintmax_t{1} << 30);
  const std::string of_host = file("host.json", R"json({"traceEvents":[
{"name":"thread_name","ph":"M","pid":0,"tid":256,"args":{"name":"W"}},
{"name":"allreduce","ph":"X","pid":0,"tid":256,"ts":1,"dur":1,"args":{"bytes":4096,"plan":"host"}},
{"name":"thread_name","ph":"M","pid":1,"tid":256,"args":{"name":"W"}},
{"name":"allreduce","ph":"X","pid":1,"tid":256,"ts":1,"dur":1,"args":{"bytes":4096,"plan":"host"}}]})json");
  const std::string svg = folder_.path("plan.svg");
  for (const std::string& trace : {broken, large, of_host, std::string("/nowhere/trace.json"), folder_.path("")}) {
    const Outcome outcome = explain({"allreduce", "4K", "--shape", "1x2", "--trace", trace, "--svg", svg});
    EXPECT_EQ(outcome.status.code(), Code::invalid) << trace;
    EXPECT_EQ(outcome.status.message().find('\n'), std::string::npos) << outcome.status.message();
    EXPECT_EQ(outcome.printed, "");
    EXPECT_FALSE(std::filesystem::exists(svg));
  }
}

TEST_F(Explain, APictureThatCannotBeWrittenFails) {
  const Outcome outcome = explain({"allreduce", "4K", "--shape", "1x2", "--svg", "/nowhere/plan.svg"});
  EXPECT_FALSE(outcome.status.ok());
  EXPECT_NE(outcome.status.message().find("/nowhere"), std::string::npos);
  EXPECT_EQ(outcome.printed, "");
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
}  // namespace plait::tuner
