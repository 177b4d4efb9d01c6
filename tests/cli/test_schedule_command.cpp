// plait schedule: what it plans, prints and writes, and each bad input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "plan/step/schedule_file.h"
#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

constexpr const char* two_rails = R"({"plait_machine": 1, "name": "two rails", "levels": [
  {"name": "node", "latency_seconds": 5e-5, "overhead_seconds": 5e-6, "port_bytes_per_second": 1.25e8, "network": true,
   "rails": 2, "rail_shares": [4, 1]},
  {"name": "rank", "latency_seconds": 1e-6}]})";

// A long all-reduce is issued before a short all-to-all that the program waits for first.
constexpr const char* step = R"({"plait_step": 1, "name": "small", "tasks": [
  {"name": "sum", "collective": "allreduce", "bytes": 2097152},
  {"name": "exchange", "collective": "alltoall", "bytes": 16384},
  {"name": "top", "seconds": 0.02, "after": ["exchange"]},
  {"name": "rest", "seconds": 0.02, "after": ["sum"]}]})";

class ScheduleCommand : public testing::Test {
 protected:
  Outcome schedule(const std::string& text, const std::string& more = "", const char* machine = two_rails) const {
    return call_line(schedule_command(), "--trace " + folder_.file("step.json", text) + " --system 4,2 --machine " +
                                             folder_.file("machine.json", machine) + " --seconds 0.3" + more);
  }
  TemporaryFolder folder_;
};

TEST_F(ScheduleCommand, PredictsEachWayAndAtLeastTheBound) {
  const Outcome outcome = schedule(step, " --json");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json times = Json::parse(outcome.printed)["predicted_seconds"];
  const double joint = times["joint"], bound = times["lower_bound"];
  EXPECT_GE(joint, bound * (1 - 1e-9));
  for (const char* other : {"as_issued", "lifo_ideal_segments", "schedule_only", "execution_only"})
    EXPECT_LE(joint, times[other].get<double>() * (1 + 1e-9)) << other;
  EXPECT_GE(bound, 0.04);  // the computation
  EXPECT_LT(joint, 0.8 * times["as_issued"].get<double>());
}

TEST_F(ScheduleCommand, WritesWhatAnEnforcerNeeds) {
  const Outcome outcome = schedule(step, " -o " + folder_.path("plan.json") + " --svg " + folder_.path("plan.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json plan = Json::parse(folder_.content("plan.json"));
  ASSERT_EQ(plan["operations"].size(), 2u);
  EXPECT_EQ(plan["channels"].size(), 2u);
  std::size_t pieces = 0, ordered = 0;
  for (const Json& operation : plan["operations"]) pieces += operation["pieces"].get<std::size_t>();
  for (const Json& channel : plan["channels"]) ordered += channel["order"].size();
  EXPECT_GE(ordered, pieces);  // a piece over both rails stands in both orders
  const auto read = plan::step::parse_schedule(folder_.content("plan.json"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->ranks, 8);
  EXPECT_EQ(read->operations[1].bytes, 16384u);
  EXPECT_EQ(read->seconds, plan["predicted_seconds"]["joint"].get<double>());
  EXPECT_NE(folder_.content("plan.svg").find("rail 1"), std::string::npos);
  EXPECT_NE(outcome.printed.find("lower bound"), std::string::npos);
}

TEST_F(ScheduleCommand, IsTheSameForASeed) {
  const auto plan = [&] {
    const Outcome outcome = schedule(step, " --json --seed 7");
    return Json::parse(outcome.printed)["predicted_seconds"]["joint"].get<double>();
  };
  EXPECT_NEAR(plan(), plan(), 1e-4);
}

TEST_F(ScheduleCommand, RefusesWhatIsNoStep) {
  expect_refused(schedule("{"), "--trace");
  expect_refused(schedule(R"({"plait_step": 2, "name": "x", "tasks": []})"), "plait_step");
  expect_refused(schedule(R"({"plait_step": 1, "name": "x", "tasks": []})"), "tasks");
  const auto task = [&](const std::string& text) {
    return schedule(R"({"plait_step": 1, "name": "x", "tasks": [)" + text + "]}");
  };
  expect_refused(task(R"({"name": "a"})"), "tasks[0].seconds");
  expect_refused(task(R"({"name": "a", "collective": "scan", "bytes": 8})"), "tasks[0].collective");
  expect_refused(task(R"({"name": "a", "collective": "bcast"})"), "tasks[0].bytes");
  expect_refused(task(R"({"name": "a", "collective": "bcast", "bytes": -8})"), "tasks[0].bytes");
  expect_refused(task(R"({"name": "a", "seconds": 1, "bytes": 8})"), "tasks[0].bytes");
  expect_refused(task(R"({"name": "a", "seconds": 1}, {"name": "a", "seconds": 1})"), "stands twice");
  expect_refused(task(R"({"name": "a", "seconds": 1, "after": ["b"]}, {"name": "b", "seconds": 1})"),
                 "expected an earlier task");
  expect_refused(task(R"({"name": "a", "seconds": 1, "after_previous": ["b"]})"), "no task has that name");
  expect_refused(task(R"({"name": "a", "seconds": 1, "after": 3})"), "tasks[0].after");
  expect_refused(task(R"({"name": "a", "seconds": 1, "color": 3})"), "color");
}

TEST_F(ScheduleCommand, RefusesOptionsThatItCannotUse) {
  expect_refused(schedule(step, " --load 2"), "--load");
  expect_refused(schedule(step, " --depth 9"), "--depth 9");
  expect_refused(schedule(step, " --chains 0"), "--chains 0");
  expect_refused(schedule(step, " --segments 1"), "--segments");
  expect_refused(call_line(schedule_command(), "--trace " + folder_.path("none.json") + " --system 4,2"), "--trace");
  std::string machine = two_rails;
  machine.replace(machine.find("[4, 1]"), 6, "[4]");
  expect_refused(schedule(step, "", machine.c_str()), "rail_shares");
}

// ---- plait simulate steps ----

Outcome simulate(const TemporaryFolder& folder, const std::string& more, const std::string& text = step) {
  const bool timed = more.find("--seconds") != std::string::npos;
  return call_line(simulate_command(), "steps --trace " + folder.file("step.json", text) + " --machine " +
                                           folder.file("machine.json", two_rails) + (timed ? "" : " --seconds 0.4") +
                                           more);
}

TEST_F(ScheduleCommand, StepsOnMoreNodesAreSimulatedAndDrawn) {
  const Outcome outcome = simulate(folder_, " --nodes 4,512 --per-node 2 --json --svg " + folder_.path("scale.svg"));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const Json points = Json::parse(outcome.printed)["steps"][0]["points"];
  ASSERT_EQ(points.size(), 2u);
  for (const Json& point : points) {
    const Json& seconds = point["seconds"];
    const double joint = seconds["joint"];
    for (const char* other : {"as_issued", "lifo_ideal_segments", "execution_only", "schedule_and_segments"})
      EXPECT_LE(joint, seconds[other].get<double>() * (1 + 1e-9)) << other;
    EXPECT_GE(joint, seconds["lower_bound"].get<double>() * (1 - 1e-9));
    // A network with a fifth less takes longer, where communication bounds the step.
    EXPECT_GT(seconds["one_rail_as_issued"].get<double>(), seconds["as_issued"].get<double>());
    EXPECT_NEAR(point["over_as_issued"].get<double>(), seconds["as_issued"].get<double>() / joint, 1e-9);
  }
  EXPECT_NE(folder_.content("scale.svg").find("512"), std::string::npos);
}

// On as many nodes as the step is written for it is what plait schedule says.
TEST_F(ScheduleCommand, SimulatedWhereTheStepIsFromItIsThatStep) {
  const Outcome planned = schedule(step, " --json"), simulated = simulate(folder_, " --nodes 4 --per-node 2 --json");
  ASSERT_TRUE(planned.status.ok() && simulated.status.ok());
  EXPECT_NEAR(Json::parse(planned.printed)["predicted_seconds"]["as_issued"].get<double>(),
              Json::parse(simulated.printed)["steps"][0]["points"][0]["seconds"]["as_issued"].get<double>(), 1e-12);
}

TEST_F(ScheduleCommand, StepsAreNotSimulatedOnWhatIsNoSystem) {
  expect_refused(simulate(folder_, " --nodes 1"), "--nodes: \"1\": expected 2");
  expect_refused(simulate(folder_, " --nodes 8,4"), "--nodes: \"8,4\": expected ascending");
  expect_refused(simulate(folder_, " --per-node 0"), "--per-node 0: expected 1 to");
  expect_refused(simulate(folder_, " --nodes 65536 --per-node 4"), "--per-node 4: expected 1 to 2 on 65536 nodes");
  expect_refused(simulate(folder_, " --ranks 1"), "--ranks 1: expected 2");
  expect_refused(simulate(folder_, " --depth 9"), "--depth 9: expected 0 to 3");
  expect_refused(simulate(folder_, " --seconds 0"), "--seconds: expected");
  expect_refused(simulate(folder_, "", "{"), "--trace");
}

}  // namespace
}  // namespace plait::tuner
