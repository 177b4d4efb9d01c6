// Overlap plans: written and read, refused with the place.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plan/overlap/overlap_plan.h"

namespace plait::plan {
namespace {

constexpr const char* small_plan = R"json({"plait_overlap": 1, "model": "two layers",
  "fingerprint": {"mpi": "Open MPI v4.1.4"},
  "calls": [{"bytes": 4096, "layer": "fc2"}, {"bytes": 100, "layer": "fc1"}, {"bytes": 8, "layer": "conv"}],
  "groups": [{"calls": 2, "threads": 2, "duty": 0.25}, {"calls": 1}],
  "predicted": {"backward_seconds": 0.5, "computation_seconds": 0.4, "exposed_seconds": 0.1}})json";

std::string with(const std::string& from, const std::string& to) {
  std::string text = small_plan;
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(OverlapPlan, IsReadAsItWasWritten) {
  const auto plan = parse_overlap_plan(small_plan);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->model, "two layers");
  EXPECT_EQ(plan->fingerprint.at("mpi"), "Open MPI v4.1.4");
  ASSERT_EQ(plan->calls.size(), 3u);
  EXPECT_EQ(plan->calls[1].layer, "fc1");
  ASSERT_EQ(plan->groups.size(), 2u);
  EXPECT_EQ(plan->groups[1].first_call, 2u);
  EXPECT_EQ(plan->groups[0].share, (CommunicationShare{2, 0.25}));
  EXPECT_EQ(plan->groups[1].share, (CommunicationShare{1, 1}));
  EXPECT_EQ(group_bytes(*plan, plan->groups[0]), 4196u);
  EXPECT_EQ(group_bytes(*plan, plan->groups[1]), 8u);
  EXPECT_EQ(plan->exposed_seconds, 0.1);
  const std::string written = overlap_plan_json(*plan);
  const auto again = parse_overlap_plan(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(overlap_plan_json(*again), written);
}

TEST(OverlapPlan, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON"},
      {std::string(small_plan).substr(0, 200), "JSON"},
      {"[]", "the document: expected an object"},
      {with("\"plait_overlap\": 1", "\"plait_overlap\": 2"), "plait_overlap: expected 1"},
      {with("\"plait_overlap\": 1, ", ""), "plait_overlap: expected 1"},
      {with("\"two layers\"", "\"\""), "model: expected a name"},
      {with("\"Open MPI v4.1.4\"", "4"), "fingerprint: expected"},
      {with("\"bytes\": 4096", "\"bytes\": 0"), "calls[0].bytes: expected at least 1"},
      {with("\"bytes\": 4096", "\"bytes\": -1"), "calls[0].bytes: expected a whole number"},
      {with("\"bytes\": 100", "\"bytes\": 1.5"), "calls[1].bytes: expected a whole number"},
      {with("\"bytes\": 100", "\"bytes\": NaN"), "JSON"},
      {with("\"bytes\": 100", "\"bytes\": 4611686018427387904"), "calls[1].bytes: expected less"},
      {with("\"bytes\": 100, ", ""), "calls[1].bytes: expected"},
      {with("\"fc1\"", "\"" + std::string(300, 'x') + "\""), "calls[1].layer: expected at most"},
      {with("\"layer\": \"fc1\"", "\"layer\": \"fc1\", \"type\": \"float\""), "calls[1].\"type\" is no member"},
      {with("{\"calls\": 2,", "{\"calls\": 0,"), "groups[0].calls: expected"},
      {with("{\"calls\": 2,", "{"), "groups[0].calls: expected a whole number from 1 to 3"},
      {with("{\"calls\": 2,", "{\"calls\": 4,"), "groups[0].calls: expected a whole number from 1 to 3"},
      {with("{\"calls\": 2,", "{\"calls\": 3,"), "groups[1].calls: expected no more groups"},
      {with("{\"calls\": 2,", "{\"calls\": 1,"), "groups: expected groups of all 3 calls, not of 2"},
      {with("\"threads\": 2", "\"threads\": 0"), "groups[0].threads: expected"},
      {with("\"threads\": 2", "\"threads\": 5000"), "groups[0].threads: expected"},
      {with("\"duty\": 0.25", "\"duty\": 0"), "groups[0].duty: expected a positive number"},
      {with("\"duty\": 0.25", "\"duty\": 0.001"), "groups[0].duty: expected a share"},
      {with("\"duty\": 0.25", "\"duty\": 1.01"), "groups[0].duty: expected a share"},
      {with("\"duty\": 0.25", "\"duty\": \"all\""), "groups[0].duty: expected a positive number"},
      {with("\"groups\": [", "\"groups\": [], \"x\": ["), "groups: expected a list"},
      {with("\"calls\": [", "\"calls\": [], \"x\": ["), "calls: expected a list"},
      {with("\"backward_seconds\": 0.5", "\"backward_seconds\": -1"), "predicted.backward_seconds: expected"},
      {with("\"backward_seconds\": 0.5", "\"forward\": 1"), "predicted.\"forward\" is no member"},
      {with("\"predicted\": {", "\"predicted\": 3, \"x\": {"), "\"x\" is no member"},
      {std::string(100000, '['), "nested"},
  };
  for (const auto& [text, words] : cases) {
    const auto plan = parse_overlap_plan(text);
    ASSERT_FALSE(plan.ok()) << words;
    EXPECT_EQ(plan.status().code(), Code::invalid);
    EXPECT_NE(plan.status().message().find(words), std::string::npos) << words << ": " << plan.status().message();
  }
}

TEST(OverlapPlan, AFileThatIsNoneIsNamed) {
  const std::string path = (std::filesystem::temp_directory_path() / "plait_overlap_plan.json").string();
  std::ofstream(path) << with("\"calls\": 2", "\"calls\": 7");
  const auto plan = read_overlap_plan(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(), "\"" + path + "\": groups[0].calls: expected a whole number from 1 to 3");
  EXPECT_FALSE(read_overlap_plan(path).ok());
}

}  // namespace
}  // namespace plait::plan
