// Plan files: written and read back, and every way to be wrong.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "plan/choose/plan_file.h"

namespace plait::plan {
namespace {

PlanFile sample() { return {Collective::reduce, {4, 2}, *parse_program("RD.2(binomial) RD.1(chain)"), 8}; }

TEST(PlanFile, IsReadBackAsWritten) {
  const auto read = parse_plan_file(plan_file_json(sample()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->collective, Collective::reduce);
  EXPECT_EQ(read->hierarchy, sample().hierarchy);
  EXPECT_EQ(text(read->program), text(sample().program));
  EXPECT_EQ(read->chunks, 8);
}

TEST(PlanFile, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not JSON"},
      {"[1]", "JSON object"},
      {R"({"plait_plan":2,"collective":"bcast","hierarchy":[2],"program":"BC.1"})", "plait_plan"},
      {R"({"plait_plan":1,"hierarchy":[2],"program":"BC.1"})", "collective"},
      {R"({"plait_plan":1,"collective":"gossip","hierarchy":[2],"program":"BC.1"})", "gossip"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[2],"program":7})", "program"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[2],"program":"BC.9"})", "BC.9"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[1],"program":"BC.1"})", "hierarchy"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[],"program":"BC.1"})", "hierarchy"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[99999999999],"program":"BC.1"})", "hierarchy"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[2],"program":"BC.1","chunks":0})", "chunks"},
      {R"({"plait_plan":1,"collective":"bcast","hierarchy":[2],"program":"BC.1","chunks":1.5})", "chunks"},
  };
  for (const auto& [json, part] : cases) {
    const auto read = parse_plan_file(json);
    ASSERT_FALSE(read.ok()) << json;
    EXPECT_NE(read.status().message().find(part), std::string::npos) << json << ": " << read.status().message();
  }
}

TEST(PlanFile, GarbageIsRefusedOrHarmless) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = plan_file_json(sample());
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    const auto read = parse_plan_file(text.substr(0, 1 + random() % text.size()));
    if (read.ok()) {
      EXPECT_FALSE(read->program.instructions.empty());
    }
  }
}

TEST(PlanFile, AValueIsTextOrAFilesName) {
  EXPECT_EQ(*read_plan("RS.2 AR.1 AG.2"), "RS.2 AR.1 AG.2");
  EXPECT_FALSE(read_plan("/nonexistent/plan.json").ok());
  const std::string path = testing::TempDir() + "plait_plan_file_test.json";
  std::ofstream(path) << "\n " << plan_file_json(sample());
  EXPECT_TRUE(parse_plan_file(*read_plan(path)).ok());
  std::ofstream(path) << "not a plan";
  EXPECT_FALSE(read_plan(path).ok());
  for (const char* blank : {"", " \n"}) {
    std::ofstream(path) << blank;
    EXPECT_NE(read_plan(path).status().message().find("is empty"), std::string::npos);
  }
  std::filesystem::resize_file(path, std::size_t{1} << 30);
  EXPECT_NE(read_plan(path).status().message().find("larger than 64 KiB"), std::string::npos);
  std::remove(path.c_str());
}

TEST(PlanFile, APipeIsRefusedInsteadOfWaitedFor) {
  const std::string path = testing::TempDir() + "plait_plan_pipe_test.json";
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(read_plan(path).status().message().find("expected a regular file"), std::string::npos);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace plait::plan
