// plait tune: what it writes and prints, and each bad input.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "plan/choose/table.h"
#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"
#include "tuner/text/layer.h"

namespace plait::tuner {
namespace {

namespace fs = std::filesystem;

Outcome tune(std::vector<std::string> arguments) { return call(tune_command(), std::move(arguments)); }

class Tune : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.path(name); }
  std::string machine(const std::string& text) const { return folder_.file("machine.json", text); }

  TemporaryFolder folder_;
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
      {{"--measure"}, "mpirun -n 2 plait tune --measure"},
      {{"--measure", "--min", "0"}, "--min: \"0\""},
      {{"--measure", "--max", "2G"}, "--max: \"2G\": expected 1 B to 1 GiB"},
      {{"--measure", "--min", "2K", "--max", "1K"}, "expected at most --max"},
      {{"--measure", "--seconds", "nan"}, "--seconds"},
      {{"--measure", "--collectives", "alltoallv"}, "expected all, or some of barrier, bcast"},
      {{"--measure", "--shape", "1x2"}, "--shape"},
      {{"--min", "1K"}, "--measure"},
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
}  // namespace plait::tuner
