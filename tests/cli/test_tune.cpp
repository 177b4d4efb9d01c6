// plait tune: what it writes and prints, and each bad input.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plan/tuning/table.h"
#include "tuner/command.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  Status status;
  std::string printed;
};

Outcome tune(std::vector<std::string> arguments) {
  const auto command = tune_command();
  CLI::App app;
  command->add_options(app);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  const Result<int> result = command->run();
  std::cout.rdbuf(before);
  return {result.status(), printed.str()};
}

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = (fs::temp_directory_path() / "plait_tune.XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    folder_ = made;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  std::string machine(const std::string& text) const {
    std::ofstream(path("machine.json")) << text;
    return path("machine.json");
  }

  fs::path folder_;
};

constexpr const char* lab = R"json({"plait_machine": 1, "name": "lab",
  "levels": [{"name": "node", "latency_seconds": 15e-6, "overhead_seconds": 5e-6, "port_bytes_per_second": 1.2e9,
              "network": true, "rails": 2},
             {"name": "rank", "latency_seconds": 0.8e-6, "cpu_seconds_per_byte": 1.25e-11}],
  "fingerprint": {"mpi": "Open MPI v4.1.4", "hardware": "2 x thing", "shape": "2x2 1x4"}})json";

TEST_F(Tune, WritesATableOfTheMachinesShapes) {
  const Outcome outcome = tune({"--machine", machine(lab), "-o", path("table.json")});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const auto table = read_table(path("table.json"));
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->machine, "lab");
  EXPECT_EQ(table->fingerprint.at("hardware"), "2 x thing");
  ASSERT_EQ(table->shapes.size(), 2u);
  EXPECT_EQ(table->shapes[0].shape, "2x2");
  EXPECT_EQ(table->shapes[1].shape, "1x4");
  for (const TunedShape& shape : table->shapes) {
    EXPECT_EQ(shape.collectives.size(), 9u);
    for (const TunedCollective& tuned : shape.collectives) {
      const bool barrier = tuned.collective == Collective::barrier;
      EXPECT_EQ(tuned.ranges.front().from, barrier ? 0u : 1u);
      EXPECT_EQ(tuned.ranges.back().to, barrier ? 1u : (std::size_t{1} << 30) + 1);
      for (std::size_t i = 1; i < tuned.ranges.size(); ++i) EXPECT_EQ(tuned.ranges[i].from, tuned.ranges[i - 1].to);
    }
  }
  EXPECT_NE(outcome.printed.find("shape 2x2, 4 ranks"), std::string::npos) << outcome.printed;
  EXPECT_NE(outcome.printed.find("alltoall"), std::string::npos) << outcome.printed;
}

TEST_F(Tune, ShapesOfTheCommandLineGoBeforeAndCountOnce) {
  const Outcome outcome =
      tune({"--machine", machine(lab), "--shape", "4x2", "--shape", "4x1x2", "--shape", "3,2,1", "--json"});
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  const auto json = nlohmann::json::parse(outcome.printed);
  ASSERT_EQ(json["shapes"].size(), 2u);
  EXPECT_EQ(json["shapes"][0]["shape"], "4x2");
  EXPECT_EQ(json["shapes"][1]["shape"], "3,2,1");
  for (const auto& collective : json["shapes"][0]["collectives"])
    for (const auto& range : collective["ranges"])
      EXPECT_GE(range["flat_seconds_from"].get<double>() * 1.021, range["seconds_from"].get<double>());
}

TEST_F(Tune, RailsAreAChoice) {
  std::string costly = lab;  // to post a message
  costly.replace(costly.find("\"overhead_seconds\": 5e-6"), 24, "\"overhead_seconds\": 5e-4");
  const Outcome outcome = tune({"--machine", machine(costly), "--shape", "4x1"});
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_NE(outcome.printed.find(" @0,1"), std::string::npos) << outcome.printed;
}

TEST_F(Tune, BadInputIsRefusedAndNothingWritten) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--shape", "4x"}, "shape \"4x\": expected"},
      {{"--shape", "1x1"}, "two ranks"},
      {{}, "expected --shape"},
      {{"--machine", path("absent.json"), "--shape", "4x2"}, "absent.json"},
      {{"--machine", "abacus", "--shape", "4x2"}, "abacus"},
      {{"--machine", machine(std::string(lab).substr(0, 80)), "--shape", "4x2"}, "expected JSON"},
  };
  for (const auto& [arguments, words] : cases) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"-o", path("table.json")});
    const Outcome outcome = tune(all);
    ASSERT_FALSE(outcome.status.ok()) << words;
    EXPECT_EQ(outcome.status.code(), Code::invalid);
    EXPECT_NE(outcome.status.message().find(words), std::string::npos) << outcome.status.message();
    EXPECT_TRUE(outcome.printed.empty());
    EXPECT_FALSE(fs::exists(path("table.json")));
  }
}

TEST_F(Tune, ATableThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(tune({"--shape", "1x2", "-o", path("absent/table.json")}).status.ok());
  EXPECT_FALSE(tune({"--shape", "1x2", "-o", "/dev/full"}).status.ok());
}

}  // namespace
}  // namespace plait
