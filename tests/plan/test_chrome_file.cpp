// A step in Chrome's trace format: every task is an event, and events of a row do not overlap.
#include "plan/step/chrome_file.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "plan/step/trace_file.h"
#include "tests/plan/step_texts.h"

namespace plait::plan::step {
namespace {

std::vector<Json> events_of(const Trace& trace) {
  return Json::parse(chrome_text(trace, spans_of(trace)))["traceEvents"];
}

TEST(ChromeFile, HasARowForComputationAndForEachCommunicator) {
  const Result<Trace> trace = parse_trace(recording_text(), 0);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const std::vector<Json> events = events_of(*trace);
  std::map<int, std::string> rows;
  std::map<std::string, Json> spans;
  for (const Json& event : events) {
    if (event["name"] == "thread_name") rows[event["tid"].get<int>()] = event["args"]["name"].get<std::string>();
    if (event["ph"] == "X") spans[event["name"].get<std::string>()] = event;
  }
  EXPECT_EQ(rows, (std::map<int, std::string>{{0, "computation"}, {1, "communicator 0"}, {2, "communicator 1"}}));
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans["allreduce.0"]["tid"], 1);
  EXPECT_NEAR(spans["allreduce.0"]["ts"].get<double>(), 1000, 1e-6);
  EXPECT_NEAR(spans["allreduce.0"]["dur"].get<double>(), 3000, 1e-6);
  EXPECT_EQ(spans["allreduce.0"]["args"]["ranks"], 4);
  EXPECT_EQ(spans["bcast.1"]["tid"], 2);
  EXPECT_EQ(spans["before.1"]["args"]["after"], Json({"allreduce.0", "before.1.0"}));
}

TEST(ChromeFile, OverlappingOperationsHaveRowsOfTheirOwn) {
  Trace trace;
  trace.step.name = "three";
  for (const char* name : {"a", "b", "c"})
    trace.step.tasks.push_back({.name = name, .collective = Collective::bcast, .bytes = 8});
  trace.times = {{.submit = 0, .seconds = 2}, {.submit = 1, .seconds = 2}, {.submit = 2, .seconds = 2}};
  std::vector<int> rows;
  const std::vector<Json> events = events_of(trace);
  for (const Json& event : events)
    if (event["ph"] == "X") rows.push_back(event["tid"].get<int>());
  EXPECT_EQ(rows, (std::vector<int>{0, 1, 0}));
}

TEST(ChromeFile, ArrowsLeadFromOperationsToWhatWaits) {
  const Result<Trace> trace = parse_trace(recording_text(), 0);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  std::vector<Json> arrows;
  const std::vector<Json> events = events_of(*trace);
  for (const Json& event : events)
    if (event["ph"] == "s" || event["ph"] == "f") arrows.push_back(event);
  ASSERT_EQ(arrows.size(), 2u);  // only one task waits for an operation of this step
  EXPECT_EQ(arrows[0]["id"], arrows[1]["id"]);
  EXPECT_EQ(arrows[0]["tid"], 1);
  EXPECT_EQ(arrows[1]["tid"], 0);
}

}  // namespace
}  // namespace plait::plan::step
