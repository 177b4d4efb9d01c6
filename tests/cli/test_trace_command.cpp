// plait trace: what it shows and writes, and each bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

constexpr const char* traced_step = R"({"plait_step": 1, "name": "small", "tasks": [
  {"name": "exchange", "collective": "alltoall", "bytes": 16384, "communicator": 2},
  {"name": "forward", "seconds": 0.02, "after_previous": ["sum"]},
  {"name": "top", "seconds": 0.0100001, "after": ["exchange", "forward"]},
  {"name": "sum", "collective": "allreduce", "bytes": 2097152, "after": ["top"], "blocking": true}]})";

class TraceCommandTest : public testing::Test {
 protected:
  Outcome show(const std::string& text, const std::string& more = "") const {
    return call_line(trace_command(), "show " + folder_.file("in.json", text) + more);
  }
  Outcome convert(const std::string& text, const std::string& to, const std::string& more = "") const {
    return call_line(trace_command(), "convert " + folder_.file("in.json", text) + " -o " + folder_.path("out.json") +
                                          " --to " + to + more);
  }
  TemporaryFolder folder_;
};

TEST_F(TraceCommandTest, ShowsTheTasks) {
  const Outcome outcome = show(traced_step, " --svg " + folder_.path("step.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"small: 4 tasks a step, computation 30.0 ms", "alltoall", "16 KiB", "2 MiB",
                            "exchange, forward", "previous sum"})
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << "\n" << outcome.printed;
  const std::string svg = folder_.content("step.svg");
  for (const char* words : {"computation", "communicator 2", "allreduce, blocking", "waited for"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST_F(TraceCommandTest, ShowsThemToPrograms) {
  const Outcome outcome = show(traced_step, " --json");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const auto json = nlohmann::json::parse(outcome.printed);
  ASSERT_EQ(json["tasks"].size(), 4u);
  EXPECT_EQ(json["tasks"][0]["waited_for"], 0.02);  // by top
  EXPECT_EQ(json["tasks"][1]["end"], 0.02);
  EXPECT_EQ(json["tasks"][3]["blocking"], true);
  EXPECT_EQ(json["tasks"][3]["after"], nlohmann::json({"top"}));
}

TEST_F(TraceCommandTest, ConvertsToChakraAndBack) {
  ASSERT_TRUE(convert(traced_step, "step").status.ok());
  const std::string step = folder_.content("out.json");
  const Outcome there = convert(traced_step, "chakra", " --ranks 8");
  ASSERT_TRUE(there.status.ok()) << there.status.message();
  EXPECT_NE(there.printed.find("4 tasks"), std::string::npos);
  const std::string chakra = folder_.content("out.json");
  EXPECT_NE(chakra.find("COMM_COLL_NODE"), std::string::npos);
  const Outcome back = convert(chakra, "step");
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_EQ(folder_.content("out.json"), step);
  const Outcome planned =
      call_line(schedule_command(), "--trace " + folder_.path("out.json") + " --system 4,2 --seconds 0.1");
  EXPECT_TRUE(planned.status.ok()) << planned.status.message();
}

TEST_F(TraceCommandTest, ConvertsToChromesFormat) {
  const Outcome outcome = convert(traced_step, "chrome");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const auto json = nlohmann::json::parse(folder_.content("out.json"));
  int spans = 0;
  for (const auto& event : json["traceEvents"]) spans += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(spans, 4);
}

TEST_F(TraceCommandTest, PredictsTimesAsIssued) {
  const Outcome outcome = show(traced_step, " --json --system 4,2");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const auto tasks = nlohmann::json::parse(outcome.printed)["tasks"];
  double first = 1;
  for (const auto& task : tasks) {
    EXPECT_LT(task["begin"].get<double>(), task["end"].get<double>())
        << task;  // the operations' ends are known as well
    first = std::min(first, task["begin"].get<double>());
  }
  EXPECT_EQ(first, 0);
  EXPECT_GE(tasks[2]["begin"], tasks[0]["end"]);
  EXPECT_NEAR(tasks[2]["end"].get<double>() - tasks[2]["begin"].get<double>(), 0.0100001, 1e-9);
  EXPECT_TRUE(convert(traced_step, "chrome", " --system 4,2").status.ok());
  EXPECT_EQ(folder_.content("out.json").find("not known"), std::string::npos);
  expect_refused(show(traced_step, " --system 4,x"), "--system");
}

TEST_F(TraceCommandTest, SaysWhatItLeavesOut) {
  const char* chakra = R"({"version": "0.0.4"}{"id": "1", "name": "m", "type": "METADATA_NODE"}
    {"id": "2", "name": "c", "type": "COMP_NODE", "durationMicros": "3", "dataDeps": ["1"]})";
  EXPECT_NE(show(chakra).printed.find("left out: 1 METADATA_NODE"), std::string::npos);
  EXPECT_NE(convert(chakra, "step").printed.find("left out: 1 METADATA_NODE"), std::string::npos);
}

TEST_F(TraceCommandTest, RefusesWhatItCannotUse) {
  expect_refused(show("{"), "in.json");
  expect_refused(show(R"({"id": "4", "type": "COMM_RECV_NODE"})"), "node 4: COMM_RECV_NODE");
  expect_refused(convert(traced_step, "chakra"), "--ranks");
  expect_refused(convert(traced_step, "perfetto"), "--to \"perfetto\"");
  expect_refused(convert(traced_step, "chakra", " --ranks -1"), "--ranks -1");
  expect_refused(call_line(trace_command(), "show " + folder_.path("none.json")), "none.json");
  expect_refused(call_line(trace_command(), "convert x --to step"), "--output");
  EXPECT_EQ(folder_.files(), 1u);
}

}  // namespace
}  // namespace plait::tuner
