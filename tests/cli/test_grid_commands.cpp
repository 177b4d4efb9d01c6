// plait synth and plait place, called as main.cpp calls them.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "plan/algorithm/program.h"
#include "tests/cli/command_call.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/text/launch_placement.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using nlohmann::json;

Outcome synth(const std::string& line) { return call_line(synth_command(), line); }
Outcome place(const std::string& line) { return call_line(place_command(), line); }

json parsed(const Outcome& outcome) {
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  return json::parse(outcome.printed, nullptr, false);
}

// ---- plait synth

struct CountedRow {
  const char* system;
  const char* axes;
  const char* reduce;
  std::uint64_t total;  // P2.md: the paper's tables, sums over the matrices, up to 5 instructions
};

TEST(Synth, CountsAreThePapers) {
  const std::vector<CountedRow> rows = {
      {"2,16", "32", "0", 47},        {"2,16", "2,16", "0", 6},      {"2,16", "2,16", "1", 50},
      {"2,16", "4,8", "0", 50},       {"2,16", "8,4", "1", 50},      {"2,16", "16,2", "0", 50},
      {"2,16", "16,2", "1", 6},       {"4,16", "64", "0", 47},       {"4,16", "2,32", "0", 6},
      {"4,16", "2,32", "1", 94},      {"4,16", "4,16", "0", 53},     {"4,16", "4,16", "1", 97},
      {"4,16", "8,8", "0", 97},       {"4,16", "8,8", "1", 97},      {"4,16", "16,4", "0", 97},
      {"4,16", "16,4", "1", 53},      {"4,16", "32,2", "0", 94},     {"4,16", "32,2", "1", 6},
      {"4,16", "16,2,2", "0,2", 188}, {"4,16", "8,2,4", "0,2", 235}, {"4,16", "4,2,8", "0,2", 235},
      {"4,16", "2,2,16", "0,2", 188}, {"4,8", "32", "0", 47},        {"4,8", "2,16", "0", 6},
      {"4,8", "2,16", "1", 94},       {"4,8", "4,8", "0", 53},       {"4,8", "4,8", "1", 97},
      {"4,8", "8,4", "0", 97},        {"4,8", "8,4", "1", 53},
  };
  for (const CountedRow& row : rows) {
    const std::string line =
        std::string("--json --top 0 --system ") + row.system + " --axes " + row.axes + " --reduce " + row.reduce;
    const json found = parsed(synth(line));
    EXPECT_EQ(found["total"], row.total) << line;
    std::uint64_t sum = 0;
    for (const json& matrix : found["matrices"]) sum += matrix["count"].get<std::uint64_t>();
    EXPECT_EQ(sum, row.total) << line;
  }
}

TEST(Synth, JsonHasTheDocumentedForm) {
  const json found = parsed(synth("--system 4,16 --axes 4,16 --reduce 1 --bytes 1G --machine a100 --top 10 --json"));
  EXPECT_EQ(found["system"], json({4, 16}));
  EXPECT_EQ(found["axes"], json({4, 16}));
  EXPECT_EQ(found["reduce"], json({1}));
  EXPECT_EQ(found["bytes"], 1u << 30);
  EXPECT_EQ(found["machine"], "a100");
  EXPECT_EQ(found["collective"], "allreduce");
  EXPECT_EQ(found["total"], 97);
  EXPECT_GT(found["elapsed_seconds"].get<double>(), 0);
  ASSERT_EQ(found["matrices"].size(), 3u);
  for (const json& matrix : found["matrices"]) {
    ASSERT_EQ(matrix["matrix"].size(), 2u);
    EXPECT_EQ(matrix["matrix"][0][0].get<int>() * matrix["matrix"][1][0].get<int>(), 4);
    EXPECT_EQ(matrix["programs"].size(), std::min<std::uint64_t>(10, matrix["count"].get<std::uint64_t>()));
    std::set<std::string> texts;
    double previous = 0;
    for (const json& program : matrix["programs"]) {
      const auto read = parse_program(program["text"].get<std::string>());
      ASSERT_TRUE(read.ok()) << program;
      EXPECT_LE(read->instructions.size(), 5u);
      EXPECT_EQ(program["algorithms"].size(), read->instructions.size());
      EXPECT_GE(program["chunks"].get<int>(), 1);
      EXPECT_GE(program["seconds"].get<double>(), previous);
      EXPECT_GT(program["seconds"].get<double>(), 0);
      EXPECT_TRUE(texts.insert(program["text"]).second) << "twice: " << program;
      previous = program["seconds"];
    }
  }
}

TEST(Synth, TextNamesEachProgramWithAndWithoutAlgorithms) {
  const auto outcome = synth("--system 4,16 --axes 4,16 --reduce 1 --machine a100 --algorithms ring");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_NE(outcome.printed.find("matrix [[2 2] [2 8]], groups [2 8]: 47 programs"), std::string::npos)
      << outcome.printed;
  EXPECT_NE(outcome.printed.find("RS.2 AR.1 AG.2  "), std::string::npos) << outcome.printed;
  EXPECT_NE(outcome.printed.find("RS.2(ring) AR.1(ring) AG.2(ring) x"), std::string::npos) << outcome.printed;
  EXPECT_NE(outcome.printed.find("total 97 programs of 3 matrices"), std::string::npos) << outcome.printed;
}

TEST(Synth, AlgorithmsAreThoseAskedFor) {
  const std::string line = "--system 4,16 --axes 64 --reduce 0 --bytes 64K --top 47 --json --algorithms ";
  const json ring = parsed(synth(line + "ring"));
  const json tree = parsed(synth(line + "tree"));
  ASSERT_EQ(ring["matrices"][0]["programs"].size(), 47u);
  ASSERT_EQ(tree["matrices"][0]["programs"].size(), 47u);
  const auto check = [](const json& found, const std::string& all_reduce) {
    for (const json& program : found["matrices"][0]["programs"]) {
      const auto read = parse_program(program["text"].get<std::string>());
      for (std::size_t index = 0; index < read->instructions.size(); ++index) {
        const Instruct what = read->instructions[index].what;
        const std::string expected = what == Instruct::all_reduce ? all_reduce
                                     : what >= Instruct::reduce   ? "chain"
                                                                  : "ring";
        EXPECT_EQ(program["algorithms"][index], expected) << program;
      }
    }
  };
  check(ring, "ring");
  check(tree, "tree");
}

TEST(Synth, GroupsOfOneRankNeedNoProgram) {
  const json found = parsed(synth("--system 4,1 --axes 1,4 --reduce 0 --json"));
  ASSERT_EQ(found["matrices"].size(), 1u);
  EXPECT_EQ(found["matrices"][0]["count"], 0);
  EXPECT_EQ(found["matrices"][0]["programs"], json::array());
  EXPECT_EQ(found["matrices"][0]["hierarchy"], json::array());
  EXPECT_EQ(found["total"], 0);
  EXPECT_NE(synth("--system 4,1 --axes 1,4 --reduce 0").printed.find("0 programs"), std::string::npos);
}

TEST(Synth, OtherCollectivesHaveProgramsOfTheirOwn) {
  const json found = parsed(synth("--system 4,8 --axes 32 --reduce 0 --json --collective bcast"));
  EXPECT_EQ(found["collective"], "bcast");
  ASSERT_FALSE(found["matrices"][0]["programs"].empty());
  for (const json& program : found["matrices"][0]["programs"]) {
    EXPECT_EQ(program["text"].get<std::string>().find("AR."), std::string::npos);
  }
}

TEST(Synth, MillionsOfProgramsAreCountedAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = synth("--system 2,2,2,2,2 --axes 32 --reduce 0 --max-size 10 --top 3");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_NE(outcome.printed.find("4,731,279 programs"), std::string::npos) << outcome.printed;
  const auto eight = synth("--system 2,2,2,2,2,2,2,2 --axes 256 --reduce 0 --max-size 16 --top 1");
  ASSERT_TRUE(eight.status.ok()) << eight.status.message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Synth, SavesThePlanOfTheFirstMatrix) {
  const TemporaryFolder folder;
  const std::string file = folder.path("written");
  const std::string line = "--system 4,2 --axes 8 --reduce 0 --bytes 1M --json --save ";
  const json found = parsed(synth(line + file));
  const json plan = json::parse(folder.content("written"));
  EXPECT_EQ(plan["plait_plan"], 1);
  EXPECT_EQ(plan["collective"], "allreduce");
  EXPECT_EQ(plan["hierarchy"], json({4, 2}));
  const json& best = found["matrices"][0]["programs"][0];
  EXPECT_EQ(plan["chunks"], best["chunks"]);
  const auto program = parse_program(plan["program"].get<std::string>());
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(text_without_algorithms(*program), best["text"]);
  EXPECT_TRUE(program->instructions.front().algorithm_given);
}

TEST(Synth, BadInputIsNamed) {
  expect_refused(synth("--system 4,16 --axes 4,15 --reduce 0"), "");
  expect_refused(synth("--system 4,0 --axes 4 --reduce 0"), "");
  expect_refused(synth("--system 4 --axes 2,2,1,1,1,1,1,1,1 --reduce 0"), "8");
  expect_refused(synth("--system 1,1,1,1,1,1,1,1,4 --axes 4 --reduce 0"), "8");
  expect_refused(synth("--system 4 --axes 4 --reduce 1"), "");
  expect_refused(synth("--system 4 --axes 4 --reduce 0,0"), "");
  expect_refused(synth("--system 4 --axes 4 --reduce x"), "--reduce \"x\": \"x\": expected whole numbers");
  expect_refused(synth("--system 4, --axes 4 --reduce 0"), "--system \"4,\": \"\": expected whole numbers");
  expect_refused(synth("--system 99999999999 --axes 4 --reduce 0"), "--system");
  expect_refused(synth("--system 4,16 --axes 4,16"), "--reduce");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --bytes 0"), "--bytes");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --bytes many"), "--bytes: \"many\"");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --max-size 0"), "--max-size 0: expected 1 to 16");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --max-size 17"), "--max-size 17: expected 1 to 16");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --top -1"), "--top");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --algorithms best"), "--algorithms \"best\": expected all");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --collective alltoall"), "--collective \"alltoall\": expected");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --machine h100"), "expected one of default, a100, v100");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --machine /nonexistent/m.json"), "No such file");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --machine /tmp"), "regular file");
  expect_refused(synth("--system 1 --axes 1 --reduce 0 --save /tmp/never"), "--save: the first matrix has no program");
  expect_refused(synth("--system 8,8,8,8,8,8,8,8 --axes 8,8,8,8,8,8,8,8 --reduce 0"), "more than 100,000 matrices");
}

TEST(Synth, MachineFilesAreReadAndBrokenOnesNamed) {
  const TemporaryFolder folder;
  const std::string broken =
      folder.file("broken.json", R"({"plait_machine":1,"name":"m","levels":[{"name":"node","latency_seconds":-1}]})");
  expect_refused(synth("--system 4 --axes 4 --reduce 0 --machine " + broken), "levels[0].latency_seconds");
  const std::string good = folder.file("good.json", machine_json(default_machine()));
  const std::string line = "--system 4,4 --axes 16 --reduce 0 --json --machine ";
  const json read = parsed(synth(line + good)), named = parsed(synth(line + "default"));
  const auto seconds = [](const json& found) { return found["matrices"][0]["programs"][0]["seconds"].get<double>(); };
  EXPECT_NEAR(seconds(read), seconds(named), 1e-9 * seconds(named));
}

TEST(Synth, UnwritableFilesAreTheMachinesFault) {
  const auto outcome = synth("--system 4 --axes 4 --reduce 0 --save /nonexistent/plan.json");
  EXPECT_EQ(outcome.status.code(), Code::unavailable);
  EXPECT_NE(outcome.status.message().find("--save \"/nonexistent/plan.json\": No such file"), std::string::npos);
}

// ---- plait place

TEST(Place, ListsEveryMatrixBestFirst) {
  const json found = parsed(place("--system 4,16 --axes 4,16 --reduce 0 --bytes 1G --machine a100 --json"));
  ASSERT_EQ(found["matrices"].size(), 3u);
  double previous = 0;
  for (const json& matrix : found["matrices"]) {
    EXPECT_GE(matrix["seconds"].get<double>(), previous);
    previous = matrix["seconds"];
    EXPECT_GE(matrix["speedup"].get<double>(), 1 - 1e-9);
    EXPECT_NEAR(matrix["speedup"].get<double>(),
                matrix["allreduce_seconds"].get<double>() / matrix["seconds"].get<double>(), 1e-9);
    EXPECT_TRUE(parse_program(matrix["reductions"][0]["text"].get<std::string>()).ok());
  }
  // A reduction within the nodes is far cheaper than one whose ranks are all on different nodes.
  EXPECT_EQ(found["matrices"][0]["matrix"], json({{1, 4}, {4, 4}}));
  EXPECT_EQ(found["matrices"][2]["matrix"], json({{4, 1}, {1, 16}}));
  EXPECT_GT(found["matrices"][2]["seconds"], 50 * found["matrices"][0]["seconds"].get<double>());
}

TEST(Place, BestAndPlainTimesAreThoseOfSynth) {
  const std::string grid = "--system 4,16 --axes 8,8 --reduce 1 --bytes 1G --machine a100 --algorithms ring --json";
  const json placed = parsed(place(grid)), listed = parsed(synth(grid + " --top 47"));
  for (const json& matrix : placed["matrices"]) {
    for (const json& other : listed["matrices"]) {
      if (matrix["matrix"] != other["matrix"]) continue;
      EXPECT_NEAR(matrix["seconds"].get<double>(), other["programs"][0]["seconds"].get<double>(), 1e-9);
      for (const json& program : other["programs"]) {
        const std::string text = program["text"];
        if (text != "AR.1" && text != "AR.12") continue;
        if (text == "AR.1" && other["hierarchy"].size() > 1) continue;
        EXPECT_NEAR(matrix["allreduce_seconds"].get<double>(), program["seconds"].get<double>(), 1e-9);
      }
    }
  }
}

TEST(Place, WeightsAddUpTheReductionsOfSeveralAxes) {
  const std::string grid = "--system 4,16 --axes 4,16 --bytes 64M --machine a100 --json ";
  const json zero = parsed(place(grid + "--reduce 0")), one = parsed(place(grid + "--reduce 1"));
  const json both = parsed(place(grid + "--weights 0:0.75,1:2.5"));
  const auto seconds = [](const json& found, const json& matrix) {
    for (const json& entry : found["matrices"])
      if (entry["matrix"] == matrix) return entry["seconds"].get<double>();
    return -1.0;
  };
  for (const json& entry : both["matrices"]) {
    const double expected = 0.75 * seconds(zero, entry["matrix"]) + 2.5 * seconds(one, entry["matrix"]);
    EXPECT_NEAR(entry["seconds"].get<double>(), expected, 1e-9 * expected);
  }
  const json at_once = parsed(place("--system 4,16 --axes 16,2,2 --reduce 0,2 --json"));
  EXPECT_EQ(at_once["matrices"][0]["reductions"].size(), 1u);
  EXPECT_EQ(at_once["matrices"][0]["reductions"][0]["axes"], json({0, 2}));
}

TEST(Place, TableHasARowForEachMatrix) {
  const auto outcome = place("--system 4,16 --axes 4,16 --reduce 0 --machine a100");
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  for (const char* words : {"   1  [[1 4] [4 4]]", "   2  [[2 2] [2 8]]", "   3  [[4 1] [1 16]]", "speedup", "x  "}) {
    EXPECT_NE(outcome.printed.find(words), std::string::npos) << words << " in\n" << outcome.printed;
  }
}

TEST(Place, RankfilePutsEachRankOnItsDevice) {
  const TemporaryFolder folder;
  const std::string file = folder.path("written");
  const auto outcome = place("--system 2,4 --axes 2,4 --reduce 0 --hosts a:4,b:8 --rankfile " + file);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  // Best is [[1 2] [2 2]]: axis 0 within the nodes. Rank 4a + 2b + c has axis-0 coordinate a, axis-1 coordinates b
  // (node) and c: device 4b + 2a + c.
  EXPECT_NE(outcome.printed.find("   1  [[1 2] [2 2]]"), std::string::npos) << outcome.printed;
  EXPECT_EQ(folder.content("written"),
            "rank 0=a slot=0\nrank 1=a slot=1\nrank 2=b slot=0\nrank 3=b slot=1\n"
            "rank 4=a slot=2\nrank 5=a slot=3\nrank 6=b slot=2\nrank 7=b slot=3\n");
  ASSERT_TRUE(place("--system 2,4 --axes 2,4 --reduce 0 --hosts a:4,b:4 --matrix 2 --rankfile " + file).status.ok());
  EXPECT_EQ(folder.content("written"),
            "rank 0=a slot=0\nrank 1=a slot=1\nrank 2=a slot=2\nrank 3=a slot=3\n"
            "rank 4=b slot=0\nrank 5=b slot=1\nrank 6=b slot=2\nrank 7=b slot=3\n");
}

TEST(Place, MapByNamesTheSimpleOptionWhereThereIsOne) {
  const auto slot = place("--system 2,4 --axes 2,4 --reduce 1 --map-by");
  EXPECT_NE(slot.printed.find("mpirun --map-by slot\nsrun --distribution=block:block\n"), std::string::npos)
      << slot.printed;
  const auto node = place("--system 4,2 --axes 2,4 --reduce 0 --map-by");
  EXPECT_NE(node.printed.find("mpirun --map-by node\nsrun --distribution=cyclic:block\n"), std::string::npos)
      << node.printed;
  const auto other = place("--system 2,4 --axes 2,4 --reduce 0 --map-by --hosts a:4,b:4");
  EXPECT_NE(other.printed.find("a rankfile is needed"), std::string::npos) << other.printed;
  EXPECT_NE(other.printed.find("SLURM_HOSTFILE naming a file of these lines:\na\na\nb\nb\na\na\nb\nb\n"),
            std::string::npos)
      << other.printed;
  const json found = parsed(place("--system 4,2 --axes 2,4 --reduce 0 --map-by --json"));
  EXPECT_EQ(found["placement"]["mpirun"], "--map-by node");
  EXPECT_EQ(found["placement"]["hosts"][1], "node1");
}

TEST(Place, BadInputIsNamed) {
  const std::string grid = "--system 2,4 --axes 2,4 ";
  expect_refused(place("--system 2,4 --axes 2,4"), "expected --reduce or --weights");
  expect_refused(place("--system 2,4 --axes 2,3 --reduce 0"), "");
  expect_refused(place(grid + "--reduce 2"), "");
  expect_refused(place(grid + "--weights 0"), "--weights: \"0\": expected axis:weight");
  expect_refused(place(grid + "--weights 0:"), "expected axis:weight");
  expect_refused(place(grid + "--weights 0:-1"), "expected axis:weight with a positive weight");
  expect_refused(place(grid + "--weights 0:nan"), "expected axis:weight with a positive weight");
  expect_refused(place(grid + "--weights 0:1,"), "expected axis:weight");
  expect_refused(place(grid + "--weights 2:1"), "--weights: axis 2: expected 0 to 1");
  expect_refused(place(grid + "--weights 0:1,0:2"), "--weights: axis 0 is named twice");
  expect_refused(place(grid + "--reduce 1 --weights 0:1"), "--weights: axis 1 of --reduce has no weight");
  expect_refused(place(grid + "--reduce 0 --matrix 0"), "--matrix 0: expected 1 to 2");
  expect_refused(place(grid + "--reduce 0 --matrix 3"), "--matrix 3: expected 1 to 2");
  expect_refused(place(grid + "--reduce 0 --rankfile /tmp/never"), "--rankfile: expected --hosts as well");
  expect_refused(place(grid + "--reduce 0 --hosts a"), "--hosts \"a\": expected name:slots");
  expect_refused(place(grid + "--reduce 0 --hosts a:0,b:4"), "--hosts \"a:0\": expected name:slots");
  expect_refused(place(grid + "--reduce 0 --hosts :4,b:4"), "--hosts \":4\": expected name:slots");
  expect_refused(place(grid + "--reduce 0 --hosts a/b:4,b:4"), "expected name:slots");
  expect_refused(place(grid + "--reduce 0 --hosts a:4,a:4"), "--hosts: \"a\" is named twice");
  expect_refused(place(grid + "--reduce 0 --hosts a:4,b:3"), "--hosts: b has 3 slots; expected at least 4");
  expect_refused(place(grid + "--reduce 0 --hosts a:4,b:4,c:4"), "--hosts: 3 hosts; expected as many");
  expect_refused(place(grid + "--reduce 0 --machine nowhere"), "nowhere");
}

// ---- helpers

TEST(Grid, MatricesAreCountedWithoutListing) {
  const auto count = [](std::vector<int> system, std::vector<int> axes, std::size_t most = 1000000) {
    return matrix_count({system, axes, {0}}, most);
  };
  EXPECT_EQ(count({4, 16}, {4, 16}), 3u);
  EXPECT_EQ(count({4, 16}, {64}), 1u);
  EXPECT_EQ(count({16, 16, 16, 16}, {16, 16, 16, 16}), 10147u);  // 4 x 4 contingency tables of margins 4
  EXPECT_EQ(count({6, 6}, {6, 6}), 4u);
  EXPECT_EQ(count({16, 16, 16, 16}, {16, 16, 16, 16}, 100), 101u);
  EXPECT_EQ(count({1 << 30, 1}, {2, 1 << 29}), 1u);
}

TEST(Grid, CountAgreesWithTheList) {
  for (const auto& [system, axes] : std::vector<std::pair<std::vector<int>, std::vector<int>>>{
           {{4, 16}, {8, 8}}, {{2, 2, 16}, {4, 16}}, {{12, 10}, {6, 20}}, {{5, 7}, {35, 1}}, {{2, 3, 4}, {4, 3, 2}}}) {
    EXPECT_EQ(matrix_count({system, axes, {0}}, 1000), parallelism_matrices(system, axes).size());
  }
}

TEST(Grid, NumbersHaveDigitGroups) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(4731279), "4,731,279");
  EXPECT_EQ(plural(1, "program"), "1 program");
}

TEST(Launch, HostsFillTheOutermostLevels) {
  const std::vector<int> system = {2, 2, 4};
  const auto hosts = [](int count, int slots) {
    std::vector<HostSlots> list;
    for (int index = 0; index < count; ++index) list.push_back({"h" + std::to_string(index), slots});
    return list;
  };
  EXPECT_EQ(*ranks_per_host(system, hosts(1, 16)), 16);
  EXPECT_EQ(*ranks_per_host(system, hosts(2, 8)), 8);
  EXPECT_EQ(*ranks_per_host(system, hosts(4, 9)), 4);
  EXPECT_FALSE(ranks_per_host(system, hosts(3, 16)).ok());
  EXPECT_FALSE(ranks_per_host(system, hosts(8, 16)).ok());
}

TEST(Launch, SlotsOfARankAreTold) {
  const std::vector<int> swapped = {0, 2, 1, 3, 4, 6, 5, 7};
  EXPECT_EQ(launch_options(swapped, 4).mpirun, "");
  EXPECT_EQ(launch_options(swapped, 4).cpu_bind, "0,2,1,3");
  const std::vector<int> cyclic = {0, 4, 1, 5, 2, 6, 3, 7};
  EXPECT_EQ(launch_options(cyclic, 4).mpirun, "--map-by node");
}

}  // namespace
}  // namespace plait::tuner
