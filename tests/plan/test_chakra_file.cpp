// Chakra's execution traces: a step comes back as it was; what other tools write is a step; what is none is refused.
#include "plan/step/chakra_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json.h"
#include "tests/plan/step_texts.h"

namespace plait::plan::step {
namespace {

std::vector<Json> chakra_messages(const std::string& text) {
  std::vector<Json> messages;
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    messages.push_back(Json::parse(text.substr(begin, text.find('\n', begin) - begin)));
  return messages;
}

Json attribute_in(const Json& node, const std::string& name) {
  for (const Json& one : node["attr"])
    if (one["name"] == name) return one;
  return nullptr;
}

std::string chakra_refusal(const std::string& text, int ranks = 0) {
  const Result<Trace> trace = parse_chakra(text, ranks);
  EXPECT_EQ(trace.status().code(), Code::invalid);
  return trace.status().message();
}

TEST(ChakraFile, GivesAStepBackAsItWas) {
  const Trace trace = told_trace();
  const Result<std::string> text = chakra_text(trace, 0);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Result<Trace> again = parse_chakra(*text, 0);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(step_json(again->step), step_json(trace.step));
  for (std::size_t task = 0; task < trace.times.size(); ++task) {
    EXPECT_EQ(again->times[task].submit, trace.times[task].submit) << task;
    EXPECT_EQ(again->times[task].seconds, trace.times[task].seconds) << task;
  }
  EXPECT_EQ(ranks_of(*again, 3, 0), 4);
  EXPECT_EQ(*chakra_text(*again, 0), *text);
}

TEST(ChakraFile, IsInChakrasWords) {
  const Result<std::string> text = chakra_text(told_trace(), 0);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const std::vector<Json> messages = chakra_messages(*text);
  ASSERT_EQ(messages.size(), 9u);
  EXPECT_EQ(messages[0]["version"], "0.0.4");
  const Json &sum = messages[2], &swap = messages[3], &half = messages[4], &last = messages[8];
  EXPECT_EQ(sum["type"], "COMM_COLL_NODE");
  EXPECT_EQ(sum["dataDeps"], Json({"0"}));
  EXPECT_EQ(sum["durationMicros"], "300000");
  EXPECT_EQ(attribute_in(sum, "comm_type")["int64Val"], "0");
  EXPECT_EQ(attribute_in(sum, "comm_size")["int64Val"], "4097");
  EXPECT_EQ(attribute_in(sum, "pg_name")["stringVal"], "3");
  EXPECT_EQ(attribute_in(sum, "is_cpu_op")["boolVal"], false);
  EXPECT_EQ(attribute_in(swap, "comm_size")["int64Val"], "48");  // 24 bytes for each of two ranks
  EXPECT_EQ(swap["ctrlDeps"], Json({"0"}));                      // the program computes before
  EXPECT_EQ(half["type"], "COMP_NODE");
  EXPECT_EQ(half["durationMicros"], "100000");
  EXPECT_EQ(last["dataDeps"], Json({"2", "1"}));
  EXPECT_EQ(attribute_in(last, "plait_after_previous")["stringList"]["values"], Json({"first"}));
}

TEST(ChakraFile, NeedsTheRanksWhereSizesCountThem) {
  Trace trace = told_trace();
  trace.ranks = {};
  const Result<std::string> text = chakra_text(trace, 0);
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.status().message().find("\"swap\""), std::string::npos);
  EXPECT_NE(text.status().message().find("--ranks"), std::string::npos);
  EXPECT_TRUE(chakra_text(trace, 8).ok());
  EXPECT_NE(chakra_refusal(foreign_chakra_text()).find("node 4: comm_size"), std::string::npos);
}

TEST(ChakraFile, ReadsWhatOtherToolsWrite) {
  const Result<Trace> trace = parse_chakra(foreign_chakra_text(), 4);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const std::vector<Task>& tasks = trace->step.tasks;
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[0].name, "mul");
  EXPECT_NEAR(tasks[0].seconds, 250e-6, 1e-12);
  EXPECT_EQ(tasks[1].collective, Collective::reduce_scatter_block);
  EXPECT_EQ(tasks[1].bytes, 1000u);
  EXPECT_EQ(tasks[1].communicator, 1);                         // by name: the first that is none of ours
  EXPECT_EQ(tasks[1].after, std::vector<std::string>{"mul"});  // through a launch that takes no time
  EXPECT_NEAR(trace->times[1].seconds.value_or(0), 1e-3, 1e-12);
  EXPECT_EQ(tasks[2].name, "mul.5");
  EXPECT_EQ(tasks[3].name, "fence");
  EXPECT_FALSE(tasks[3].collective);
  EXPECT_NEAR(tasks[3].seconds, 20e-6, 1e-12);
  for (const Task& task : tasks) EXPECT_TRUE(task.after_previous.empty());
  EXPECT_EQ(trace->left_out, "1 COMP_NODE without a duration, 1 METADATA_NODE");
  EXPECT_TRUE(parse_step(step_json(trace->step)).ok());
}

TEST(ChakraFile, ReadsListsNumbersAndTheSchemasNames) {
  const std::string nodes =
      R"([{"id": 1, "name": "c", "type": 4, "duration_micros": 5, "data_deps": [0]},
          {"id": 0, "name": "r", "type": 7, "attr": [{"name": "comm_type", "string_val": "BROADCAST"},
           {"name": "comm_size", "uint64_val": 12.0}]}])";
  for (const std::string& text : {nodes, R"({"nodes": )" + nodes + "}"}) {
    const Result<Trace> trace = parse_chakra(text, 0);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    ASSERT_EQ(trace->step.tasks.size(), 2u);
    EXPECT_EQ(trace->step.tasks[0].collective, Collective::bcast);
    EXPECT_EQ(trace->step.tasks[0].bytes, 12u);
    EXPECT_EQ(trace->step.tasks[1].after, std::vector<std::string>{"r"});
  }
}

TEST(ChakraFile, ReadsWhatChakrasFeederReads) {
  const Result<Trace> trace = parse_chakra(
      R"({"workload_graph": [{"Id": 2, "Name": "w", "NodeType": 4, "is_cpu_op": false, "runtime": 9, "data_deps": [5]},
          {"Id": 5, "Name": "g", "NodeType": 7, "is_cpu_op": 0, "data_deps": [], "comm_type": 2, "comm_size": 64}]})",
      0);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->step.tasks.size(), 2u);
  EXPECT_EQ(trace->step.tasks[0].collective, Collective::allgather);
  EXPECT_EQ(trace->step.tasks[0].bytes, 64u);
  EXPECT_NEAR(trace->step.tasks[1].seconds, 9e-6, 1e-12);
  EXPECT_NE(chakra_refusal(R"({"workload_graph": [{"Id": 2, "NodeType": 5}]})").find("node 2: COMM_SEND_NODE"),
            std::string::npos);
}

// 500 tasks, and 1,200 nodes without a duration that all wait for all of them.
TEST(ChakraFile, RefusesDependenciesWithoutMeasure) {
  std::string ids, text = R"({"version": "0.0.4"})";
  for (int id = 0; id < 1700; ++id) {
    const std::string number = std::to_string(id);
    if (id < 500)
      text += R"({"type": 4, "durationMicros": 1, "id": )" + number + "}";
    else
      text += R"({"type": 1, "dataDeps": [)" + ids + R"(], "id": )" + number + "}";
    if (id < 512) ids += (ids.empty() ? "" : ",") + number;
  }
  EXPECT_NE(chakra_refusal(text).find("fewer of them"), std::string::npos);
}

TEST(ChakraFile, NamesWhatIsWrong) {
  const auto refusal = [](const std::string& node) { return chakra_refusal(R"({"version": "0.0.4"})" + node, 4); };
  const auto expect = [&](const std::string& node, const std::string& words) {
    EXPECT_NE(refusal(node).find(words), std::string::npos) << refusal(node);
  };
  expect("", "no nodes");
  expect("x", "byte 20");
  expect(R"({"id": "1")", "ends within");
  expect(R"({"id": "-1", "type": 4})", "nodes[0].id");
  expect(R"({"id": "1"})", "node 1: type");
  expect(R"({"id": "1", "type": "COMM_SEND_NODE"})", "node 1: COMM_SEND_NODE: expected COMP_NODE");
  expect(R"({"id": "2", "type": "MEM_LOAD_NODE"})", "node 2: MEM_LOAD_NODE");
  expect(R"({"id": "1", "type": 4, "durationMicros": "fast"})", "node 1: duration_micros");
  expect(R"({"id": "1", "type": 4, "dataDeps": ["2"]})", "node 1: it waits for 2: expected a node of the file");
  expect(R"({"id": "1", "type": 4, "dataDeps": ["1"]})", "circle");
  expect(R"({"id": "1", "type": 4}{"id": 1, "type": 4})", "node 1: it stands twice");
  expect(R"({"id": "1", "type": 4})", "a COMP_NODE that takes time");
  expect(R"({"id": "1", "type": 7})", "node 1: comm_type");
  expect(R"({"id": "1", "type": 7, "attr": [{"name": "comm_type", "int64Val": "10"}]})", "node 1: comm_type");
  expect(R"({"id": "1", "type": 7, "attr": [{"name": "comm_type", "int64Val": "0"}]})", "node 1: comm_size");
  expect(R"({"id": "1", "type": 4, "durationMicros": "1",
            "attr": [{"name": "plait_after_previous", "stringList": {"values": ["x"]}}]})",
         "plait_after_previous \"x\"");
  EXPECT_NE(chakra_refusal(R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})").find("PyTorch"), std::string::npos);
}

}  // namespace
}  // namespace plait::plan::step
