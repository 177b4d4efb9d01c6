// Which sizes the single copy has, and what the report says of the traffic within nodes.
#include <gtest/gtest.h>

#include "runtime/report/node_report.h"
#include "runtime/team/single_copy.h"

namespace plait::runtime {
namespace {

Config wanting(const std::string& single_copy, std::size_t threshold = 0) {
  Config config;
  config.single_copy = single_copy;
  config.single_copy_threshold = threshold;
  return config;
}

TEST(SingleCopy, TheSettingsComeFirst) {
  EXPECT_EQ(forced_single_copy(wanting("none"), true, true).kernel_from, never);
  EXPECT_EQ(forced_single_copy(wanting("auto", 4096), true, false).kernel_from, 4096u);
  EXPECT_EQ(forced_single_copy(wanting("auto", 4096), true, false).mapped_from, never);
  EXPECT_EQ(forced_single_copy(wanting("xpmem", 4096), true, true).kernel_from, never);
  EXPECT_EQ(forced_single_copy(wanting("auto", 4096), false, false).kernel_from, never);
  EXPECT_FALSE(forced_single_copy(wanting("auto"), true, false).known());
  EXPECT_EQ(forced_single_copy(wanting("auto", 4096), true, false).pair_from, 4096u);
  const SingleCopySizes measured = no_single_copy;
  EXPECT_EQ(allowed_single_copy(measured, wanting("auto"), true, true).kernel_from, never);
  EXPECT_NE(allowed_single_copy(measured, wanting("cma"), true, true).kernel_from, never) << "asked for";
  EXPECT_NE(allowed_single_copy(measured, wanting("cma"), true, true).pair_from, never) << "asked for";
  EXPECT_EQ(allowed_single_copy(measured, wanting("auto"), true, true).pair_from, never);
  EXPECT_NE(allowed_single_copy(measured, wanting("xpmem"), true, true).mapped_from, never) << "asked for";
}

TEST(SingleCopy, XpmemHasToBeatBoth) {
  const CopyCosts slow{8, 16, 32, 128}, middle{4, 8, 16, 64}, fast{2, 4, 8, 32};
  EXPECT_EQ(sizes_of({slow, middle, fast}).mapped_from, probed_bytes[0]);
  EXPECT_EQ(sizes_of({slow, middle, fast}).kernel_from, probed_bytes[0]);
  EXPECT_EQ(sizes_of({slow, fast, middle}).mapped_from, never);
  EXPECT_EQ(sizes_of({middle, slow, slow}).kernel_from, never);
  EXPECT_EQ(sizes_of({slow, {}, fast}).kernel_from, never) << "not measured";
}

TEST(SingleCopy, WhatAPairOnlyMovesHasLessToWinBy) {
  const CopyCosts staged{2.2, 3.6, 7.2, 25.5}, kernel{2.5, 3.6, 5.7, 20.6};
  EXPECT_EQ(sizes_of({staged, kernel, {}}).kernel_from, never);
  EXPECT_EQ(sizes_of({staged, kernel, {}}).pair_from, probed_bytes[2]);
}

TEST(SingleCopy, WithoutAMeasurementNothingIsKnown) {
  EXPECT_FALSE(sizes_of({}).known());
  const CopyCosts some{1, 2, 3, 4};
  EXPECT_FALSE(sizes_of({{}, some, some}).known());
}

TEST(NodeReport, AddsUpByNode) {
  const nlohmann::json facts = {{"ways", {1, 2, 3, 4, 5}},
                                {"buffers", {0, 5, 0, 5 << 20}},
                                {"shared_heap", 1 << 20},
                                {"segments", {3 << 20, 2 << 20}},
                                {"single_copy", {32768, never}}};
  NodeReport report;
  merge_node_facts(report, facts, 0);
  merge_node_facts(report, facts, 0);
  merge_node_facts(report, facts, 1);
  std::string text;
  for (const std::string& line : node_report_lines(report, "mpi")) text += line + "\n";
  EXPECT_NE(text.find("shared segments of at most 6 MiB on a node, the largest 2 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("at once 3, directly 6, by the kernel 9, in stages 12, between devices 15"), std::string::npos)
      << text;
  EXPECT_NE(text.find("by the kernel from 32 KiB, by XPMEM never"), std::string::npos) << text;
  EXPECT_NE(text.find("PLAIT_SHARED=malloc would"), std::string::npos) << text;
  const nlohmann::json object = node_report_json(report, "mpi");
  EXPECT_EQ(object["segment_bytes"], 6 << 20);
  EXPECT_EQ(object["shm_collectives"]["by_kernel"], 9);
  EXPECT_EQ(object["large_calls"]["private"], 15);
  EXPECT_EQ(object["single_copy_from"]["kernel"], 32768);
  EXPECT_TRUE(object["single_copy_from"]["xpmem"].is_null());
  EXPECT_TRUE(object.contains("advice"));
}

TEST(NodeReport, SaysNothingOfNothing) { EXPECT_TRUE(node_report_lines({}, "mpi").empty()); }

}  // namespace
}  // namespace plait::runtime
