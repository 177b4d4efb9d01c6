#include "plan/model/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "plan/choose/shape_tuner.h"
#include "plan/model/machine_levels.h"
#include "plan/synthesis/group_model.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

void expect_near_relative(double one, double other) { EXPECT_NEAR(one, other, 1e-12 * std::abs(one)); }

void expect_same(const Machine& one, const Machine& other) {
  EXPECT_EQ(one.name, other.name);
  ASSERT_EQ(one.levels.size(), other.levels.size());
  for (std::size_t index = 0; index < one.levels.size(); ++index) {
    const LinkLevel& a = one.levels[index];
    const LinkLevel& b = other.levels[index];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.latency, b.latency);
    EXPECT_EQ(a.overhead, b.overhead);
    EXPECT_EQ(a.cpu_seconds_per_byte, b.cpu_seconds_per_byte);
    expect_near_relative(a.port_seconds_per_byte, b.port_seconds_per_byte);
    EXPECT_EQ(a.port_seconds_per_message, b.port_seconds_per_message);
    EXPECT_EQ(a.half_duplex, b.half_duplex);
    EXPECT_EQ(a.port_shared, b.port_shared);
    EXPECT_EQ(a.network, b.network);
  }
  expect_near_relative(one.reduce_seconds_per_byte, other.reduce_seconds_per_byte);
  expect_near_relative(one.copy_seconds_per_byte, other.copy_seconds_per_byte);
  expect_near_relative(one.start_seconds_per_byte, other.start_seconds_per_byte);
  EXPECT_EQ(one.ranks_per_core, other.ranks_per_core);
}

TEST(MachineFile, BuiltInOnesComeBackFromTheirFiles) {
  for (const char* name : {"default", "a100", "v100"}) {
    const auto machine = machine_named(name);
    ASSERT_TRUE(machine.ok()) << name;
    EXPECT_EQ(machine->name, name);
    ASSERT_EQ(machine->levels.size(), 2u);
    EXPECT_TRUE(machine->levels[0].network);
    EXPECT_FALSE(machine->levels[1].network);
    const auto read = parse_machine(machine_json(*machine));
    ASSERT_TRUE(read.ok()) << read.status().message();
    expect_same(*machine, *read);
  }
}

TEST(MachineFile, ThePapersSystemsDifferInTheirLinks) {
  const auto a100 = machine_named("a100");
  const auto v100 = machine_named("v100");
  EXPECT_TRUE(a100->levels[1].half_duplex);
  EXPECT_FALSE(v100->levels[1].half_duplex);
  EXPECT_LT(a100->levels[1].port_seconds_per_byte, v100->levels[1].port_seconds_per_byte);
  EXPECT_GT(a100->start_seconds_per_byte, 0);
}

TEST(MachineFile, UnknownNamesAreToldWhichThereAre) {
  const auto machine = machine_named("h100");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.status().code(), Code::invalid);
  EXPECT_EQ(machine.status().message(), "machine \"h100\": expected one of default, a100, v100");
}

TEST(MachineFile, KeepsWhatEachChannelDoesAlone) {
  Machine machine = default_machine();
  machine.levels[0].channels = {{"ucx", 12e-6, 2e-6, 1e-9}, {"mpi", 20e-6, 4e-6, 0}};
  const auto read = parse_machine(machine_json(machine));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->levels[0].channels.size(), 2u);
  EXPECT_TRUE(read->levels[1].channels.empty());
  const ChannelLink& link = read->levels[0].channels[0];
  EXPECT_EQ(link.channel, "ucx");
  EXPECT_DOUBLE_EQ(link.latency, 12e-6);
  EXPECT_DOUBLE_EQ(link.overhead, 2e-6);
  EXPECT_DOUBLE_EQ(link.seconds_per_byte, 1e-9);
}

TEST(MachineFile, AbsentMembersMeanNoCost) {
  const auto machine = parse_machine(R"({"plait_machine":1,"name":"m","levels":[{"name":"node"}]})");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  Machine expected;
  expected.name = "m";
  expected.levels.resize(1);
  expected.levels[0].name = "node";
  expect_same(expected, *machine);
}

TEST(MachineFile, RatesBecomeSecondsAByte) {
  const auto machine = parse_machine(R"({"plait_machine":1,"name":"m","reduce_bytes_per_second":2e9,"ranks_per_core":4,
      "levels":[{"name":"node","port_bytes_per_second":1e9,"duplex":"half","network":true},
                {"name":"rank","port_bytes_per_second":0,"duplex":"full"}]})");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->levels[0].port_seconds_per_byte, 1e-9);
  EXPECT_TRUE(machine->levels[0].half_duplex);
  EXPECT_TRUE(machine->levels[0].network);
  EXPECT_EQ(machine->levels[1].port_seconds_per_byte, 0);
  EXPECT_FALSE(machine->levels[1].half_duplex);
  EXPECT_EQ(machine->reduce_seconds_per_byte, 0.5e-9);
  EXPECT_EQ(machine->ranks_per_core, 4);
}

struct Refused {
  std::string json;
  std::string says;
};

// `members` replace the last level's; `top` is added to the document.
std::string file_with(const std::string& members, const std::string& top = "") {
  return R"({"plait_machine":1,"name":"m")" + top + R"(,"levels":[{"name":"node"},{)" + members + "}]}";
}

TEST(MachineFile, BrokenFilesSayWhereAndWhatWasExpected) {
  std::string nine = R"({"plait_machine":1,"name":"m","levels":[{"name":"0"})";
  for (int level = 1; level < 9; ++level) nine += R"(,{"name":"x"})";
  const std::vector<Refused> cases = {
      {"", "expected JSON"},
      {"{", "expected JSON"},
      {"[]", "the document: expected an object"},
      {"7", "the document: expected an object"},
      {"{}", "plait_machine: expected 1"},
      {R"({"plait_machine":2,"name":"m","levels":[{"name":"node"}]})", "plait_machine: expected 1"},
      {R"({"plait_machine":1,"levels":[{"name":"node"}]})", "name: expected a name; it is missing"},
      {R"({"plait_machine":1,"name":7,"levels":[{"name":"node"}]})", "name: expected a name"},
      {R"({"plait_machine":1,"name":"m"})", "levels: expected a list of 1 to 8 levels"},
      {R"({"plait_machine":1,"name":"m","levels":[]})", "levels: expected a list of 1 to 8 levels"},
      {R"({"plait_machine":1,"name":"m","levels":{"name":"node"}})", "levels: expected a list of 1 to 8 levels"},
      {nine + "]}", "levels: expected a list of 1 to 8 levels"},
      {R"({"plait_machine":1,"name":"m","levels":[3]})", "levels[0]: expected an object"},
      {file_with(""), "levels[1].name: expected a name; it is missing"},
      {file_with(R"("name":"")"), "levels[1].name: expected a name"},
      {file_with(R"("name":"x","latency_seconds":-1)"), "levels[1].latency_seconds: expected a number of seconds"},
      {file_with(R"("name":"x","latency_seconds":"1")"), "levels[1].latency_seconds: expected a number of seconds"},
      {file_with(R"("name":"x","latency_seconds":null)"), "levels[1].latency_seconds: expected a number of seconds"},
      {file_with(R"("name":"x","overhead_seconds":true)"), "levels[1].overhead_seconds: expected a number of seconds"},
      {file_with(R"("name":"x","latency_seconds":1e999)"), "expected JSON"},
      {file_with(R"("name":"x","port_bytes_per_second":-1)"),
       "levels[1].port_bytes_per_second: expected bytes a second"},
      {file_with(R"("name":"x","port_bytes_per_second":1e-320)"), "levels[1].port_bytes_per_second: expected bytes"},
      {file_with(R"("name":"x","port_bytes_per_second":1e308)"), "levels[1].port_bytes_per_second: expected bytes"},
      {file_with(R"("name":"x","duplex":"both")"), "levels[1].duplex: expected \"full\" or \"half\""},
      {file_with(R"("name":"x","duplex":1)"), "levels[1].duplex: expected \"full\" or \"half\""},
      {file_with(R"("name":"x","channels":[])"), "levels[1].channels: expected a list of 1 to 8 channels"},
      {file_with(R"("name":"x","channels":[{"latency_seconds":1}])"), "levels[1].channels[0].channel: expected"},
      {file_with(R"("name":"x","channels":[{"channel":"a","bytes_per_second":-1}])"),
       "levels[1].channels[0].bytes_per_second: expected bytes a second"},
      {file_with(R"("name":"x","network":1)"), "levels[1].network: expected true or false"},
      {file_with(R"("name":"x","speed":1)"), "levels[1].\"speed\" is no member: expected one of name, latency_seconds"},
      {file_with(R"("name":"x")", R"(,"colour":1)"), "\"colour\" is no member: expected one of plait_machine, name"},
      {file_with(R"("name":"x")", R"(,"ranks_per_core":0)"), "ranks_per_core: expected a positive number"},
      {file_with(R"("name":"x")", R"(,"start_bytes_per_second":[1])"),
       "start_bytes_per_second: expected bytes a second"},
  };
  for (const Refused& refused : cases) {
    const auto machine = parse_machine(refused.json);
    ASSERT_FALSE(machine.ok()) << refused.json;
    EXPECT_EQ(machine.status().code(), Code::invalid);
    EXPECT_NE(machine.status().message().find(refused.says), std::string::npos)
        << refused.json << "\n  says: " << machine.status().message() << "\n  not:  " << refused.says;
  }
}

// Whatever the bytes, there is a machine that can be written again, or a message.
TEST(MachineFile, GarbageIsRefusedOrUnderstoodNeverThrown) {
  const unsigned seed = 20250611;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = machine_json(default_machine());
  int refused = 0, understood = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 16);
          break;
        case 2:
          text.insert(at, 1, "{}[],:\"-9e."[random() % 11]);
          break;
        default:
          text[at] = static_cast<char>('0' + random() % 10);
          break;
      }
      if (text.empty()) text = " ";
    }
    const auto machine = parse_machine(text);
    if (machine.ok()) {
      ++understood;
      EXPECT_TRUE(parse_machine(machine_json(*machine)).ok()) << text;
    } else {
      ++refused;
      EXPECT_FALSE(machine.status().message().empty());
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(understood, 100);
}

TEST(MachineFile, DeepNestingDoesNotExhaustTheStack) {
  EXPECT_FALSE(parse_machine(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(parse_machine(std::string(500'000, '[') + std::string(500'000, ']')).ok());
}

// ---- Levels of a shape ----

// Nodes of GPUs in islands: 100 GB/s within one, 10 GB/s between them, 1 GB/s a node. Drawn, of no machine.
Machine islands_of_gpus() {
  const auto machine = parse_machine(R"({"plait_machine": 1, "name": "islands", "levels": [
      {"name": "node", "latency_seconds": 2e-5, "port_bytes_per_second": 1e9, "network": true},
      {"name": "island", "latency_seconds": 1e-5, "port_bytes_per_second": 1e10},
      {"name": "gpu", "latency_seconds": 5e-6, "port_bytes_per_second": 1e11}]})");
  return machine.ok() ? *machine : Machine{};
}

Hierarchy shape_on(const Machine& machine, const std::string& shape) {
  const auto parsed = parse_shape(shape);
  return parsed.ok() ? hierarchy_on(machine, parsed->hierarchy) : Hierarchy();
}

TEST(MachineLevels, AreTheShapesWhereTheMachineHasGpus) {
  const Machine machine = islands_of_gpus();
  EXPECT_EQ(shape_on(machine, "2x2x4").describe(), "[2 node, 2 island, 4 gpu]");
  EXPECT_EQ(shape_on(machine, "3/2x2x4").describe(), "[3 switch, 2 node, 2 island, 4 gpu]");
  EXPECT_EQ(shape_on(machine, "1x2x4").describe(), "[2 island, 4 gpu]");
  for (const char* shape : {"2x2x4", "3/2x2x4", "1x2x4"}) {
    const Hierarchy with = shape_on(machine, shape);
    EXPECT_EQ(shape_text(with, 1), shape);
    for (int rank = 0; rank < with.ranks(); ++rank) EXPECT_EQ(with.vrank_of(rank), rank);
  }
}

TEST(MachineLevels, AreNoneOfTheShapesElsewhere) {
  EXPECT_EQ(shape_on(default_machine(), "2x2x4").describe(), "[2 node, 2 package, 4 core]");
  EXPECT_EQ(shape_on(islands_of_gpus(), "2x8").describe(), "[2 node, 8 core]");  // one level within a node, not two
  EXPECT_EQ(shape_on(islands_of_gpus(), "3,2").describe(), "[2 node, 3,2 rank]");
  Machine other = islands_of_gpus();
  other.levels[1].name = "board";
  EXPECT_EQ(shape_on(other, "2x2x4").describe(), "[2 node, 2 package, 4 core]");
  other.levels[1].name = "gpu";  // twice
  EXPECT_EQ(shape_on(other, "2x2x4").describe(), "[2 node, 2 package, 4 core]");
  const auto a100 = machine_named("a100");
  ASSERT_TRUE(a100.ok());
  EXPECT_EQ(shape_on(*a100, "4x16").describe(), "[4 node, 16 gpu]");
}

// Each level by its own links; without its name an island would be taken for what is within one.
TEST(MachineLevels, HaveTheirOwnRates) {
  const Machine machine = islands_of_gpus();
  const GroupModel model = group_model(machine, shape_on(machine, "2x2x4"), 1);
  ASSERT_EQ(model.levels.size(), 3u);
  for (std::size_t level = 0; level < 3; ++level) EXPECT_EQ(model.levels[level].link.name, machine.levels[level].name);
}

// Predictions go by them: islands cost what their links do.
TEST(MachineLevels, AreWhatPredictionsGoBy) {
  const auto seconds = [](const Machine& machine) {
    const Hierarchy hierarchy = shape_on(machine, "1x2x4");
    const auto found = tune_collective(
        Collective::allreduce,
        {.hierarchy = hierarchy, .machine = machine, .siblings = 1, .rails = 0, .shared_memory = false});
    return found.ok() ? found->ranges.back().seconds_to : 0;
  };
  Machine slow = islands_of_gpus(), fast = slow;
  fast.levels[1].port_seconds_per_byte = fast.levels[2].port_seconds_per_byte;
  EXPECT_GT(seconds(fast), 0);
  EXPECT_GT(seconds(slow), 1.5 * seconds(fast));
}

}  // namespace
}  // namespace plait::plan
