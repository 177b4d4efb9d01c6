// plait advise: what it reads, what it says, and what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "runtime/report/placement_facts.h"
#include "tests/cli/command_call.h"
#include "tuner/text/report_reader.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::json;

// As jobs write it: 2 nodes of 4 ranks by slot, 10 allreduces of 1 MiB on each column of a grid of 4 x 2.
Json recorded() {
  return Json::parse(R"json({
    "version": "0.1.0", "mpi": "Open MPI v4.1.4, package: Debian", "ranks": 8, "saved_seconds": 0.0, "node": {},
    "rows": [{"collective": "allreduce", "ranks": 4, "plan": "AR.1(ring)"}, {"collective": "bcast", "plan": "host"}],
    "placement": {
      "network_seconds_per_byte": 8e-9, "ranks_per_core": 1,
      "ranks": [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 2, 1], [0, 0, 0, 0, 3, 1],
                [1, 0, 0, 0, 0, 1], [1, 0, 0, 0, 1, 1], [1, 0, 0, 0, 2, 1], [1, 0, 0, 0, 3, 1]],
      "rows": [{"axes": "4@2", "collective": "allreduce", "calls": 10, "bytes": 1048576}]}})json");
}

Outcome advise(const std::string& text, std::vector<std::string> options = {}) {
  const TemporaryFolder folder;
  options.insert(options.begin(), folder.file("report.json", text));
  return call(advise_command(), options);
}

TEST(Advise, SaysWhereTheRanksWouldBeFaster) {
  const Outcome outcome = advise(recorded().dump());
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_TRUE(
      outcome.printed.starts_with("placement: axis 0 (4 ranks, stride 2) crosses nodes: mapping by node (mpirun "
                                  "--map-by node) would be "))
      << outcome.printed;
  EXPECT_TRUE(outcome.printed.ends_with("x faster\n")) << outcome.printed;
}

TEST(Advise, NamesTheOptionsOfTheJobsLauncher) {
  Json report = recorded();
  report["mpi"] = "MPICH Version: 4.0.2";
  EXPECT_NE(advise(report.dump()).printed.find("mpiexec -ppn 1"), std::string::npos);
}

TEST(Advise, PrintsJson) {
  Json report = recorded();
  report["placement"]["ranks"][7][0] = 0;  // 5 and 3
  for (int rank = 0; rank < 5; ++rank) report["placement"]["ranks"][rank][4] = -1;
  const Json said = Json::parse(advise(report.dump(), {"--json"}).printed);
  EXPECT_EQ(said["ranks"], 8);
  EXPECT_EQ(said["mpi"], "Open MPI v4.1.4, package: Debian");
  EXPECT_EQ(said["placement"]["better"], false);
  EXPECT_EQ(said["placement"]["times"], 1);
  EXPECT_EQ(said["placement"]["sentence"], "placement: nothing to gain: the nodes have different numbers of ranks");
  EXPECT_EQ(said["mapping"],
            Json({"mapping: 3 to 5 ranks on a node, 4 on each would be even: mpirun --map-by ppr:4:node"}));
  const Json better = Json::parse(advise(recorded().dump(), {"--json"}).printed);
  EXPECT_EQ(better["placement"]["better"], true);
  EXPECT_GT(better["placement"]["times"], 1.2);
}

TEST(Advise, BindingCountsWhereAnythingWasAccelerated) {
  Json report = recorded();
  for (Json& rank : report["placement"]["ranks"]) rank = {rank[0], 0, 0, -1, -1, 16};
  const std::string words = "binding: 8 ranks may move between the cores of their node: mpirun --bind-to core";
  EXPECT_NE(advise(report.dump()).printed.find("\n" + words), std::string::npos);
  report["rows"].erase(0);
  EXPECT_EQ(advise(report.dump()).printed.find(words), std::string::npos);
}

TEST(Advise, AskedOfAMachine) {
  EXPECT_TRUE(advise(recorded().dump(), {"--machine", "a100"}).status.ok());
  expect_refused(advise(recorded().dump(), {"--machine", "abacus"}), "abacus");
  expect_refused(advise(recorded().dump(), {"--machine", "absent/machine.json"}), "absent/machine.json");
}

TEST(Advise, SaysThatPlacesAreNotKnown) {
  Json report = recorded();
  report["placement"]["ranks"] = Json::array();
  EXPECT_EQ(advise(report.dump()).printed, "placement: nothing to gain: where the ranks are is not known\n");
}

// What the library writes is what the command reads.
TEST(Advise, ReadsWhatAJobWrites) {
  runtime::PlacementFacts facts;
  for (int rank = 0; rank < 4; ++rank) facts.ranks.push_back({rank / 2, 0, -1, rank, -1, 2});
  facts.rows.push_back({"2@2", Collective::allgather, 2.5, 100});
  facts.network_seconds_per_byte = 1e-9;
  facts.ranks_per_core = 2;
  SortedJson document = {{"mpi", "MPICH"}, {"ranks", 4}, {"rows", SortedJson::array()}};
  document["placement"] = placement_json(facts);
  const auto job = read_report(document.dump(2));
  ASSERT_TRUE(job.ok()) << job.status().message();
  ASSERT_EQ(job->places.size(), 4u);
  EXPECT_EQ(job->places[3].node, 1);
  EXPECT_EQ(job->places[3].numa, -1);
  EXPECT_EQ(job->places[3].l3, 3);
  EXPECT_EQ(job->places[3].cores_allowed, 2);
  ASSERT_EQ(job->traffic.size(), 1u);
  EXPECT_EQ(job->traffic[0].axes, (std::vector<GridAxis>{{2, 2}}));
  EXPECT_EQ(job->traffic[0].collective, Collective::allgather);
  EXPECT_EQ(job->traffic[0].calls, 2.5);
  EXPECT_EQ(job->traffic[0].bytes, 100);
  EXPECT_EQ(job->network_seconds_per_byte, 1e-9);
  EXPECT_EQ(job->ranks_per_core, 2);
  EXPECT_FALSE(job->accelerated);
}

// ---- What is refused ----

struct Wrong {
  const char* pointer;  // where the value is put
  const char* value;
  const char* words;
};

TEST(Advise, RefusesWrongValuesByTheirPlace) {
  for (const Wrong& wrong : {
           Wrong{"/mpi", "7", "mpi: expected a name"},
           Wrong{"/ranks", "0", "ranks: expected a whole number from 1"},
           Wrong{"/ranks", "9", "placement.ranks: expected a list, of nothing or of as many entries as ranks: 9"},
           Wrong{"/ranks", "18446744073709551615", "ranks: expected a whole number from 1"},
           Wrong{"/ranks", "\"8\"", "ranks: expected a whole number from 1"},
           Wrong{"/rows", "{}", "rows: expected a list"},
           Wrong{"/rows/1", "null", "rows[1].plan: expected a plan's name"},
           Wrong{"/rows/1/plan", "[]", "rows[1].plan: expected a plan's name"},
           Wrong{"/placement", "\"placement: axis 0\"", "placement: expected an object, as PLAIT_REPORT=FILE.json"},
           Wrong{"/placement/network_seconds_per_byte", "-1", "placement.network_seconds_per_byte: expected a number"},
           Wrong{"/placement/ranks_per_core", "0", "placement.ranks_per_core: expected more than 0"},
           Wrong{"/placement/ranks_per_core", "1e300", "placement.ranks_per_core: expected a number from 0 to 1e18"},
           Wrong{"/placement/ranks", "3", "placement.ranks: expected a list"},
           Wrong{"/placement/ranks/2", "[0, 0, 0]", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/ranks/2/0", "-1", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/ranks/2/0", "4294967296", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/ranks/2/0", "18446744073709551615", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/ranks/2/4", "-2", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/ranks/2/1", "0.5", "placement.ranks[2]: expected six whole numbers"},
           Wrong{"/placement/rows", "null", "placement.rows: expected a list"},
           Wrong{"/placement/rows/0", "[]", "placement.rows[0]"},
           Wrong{"/placement/rows/0/axes", "\"4\"", "placement.rows[0].axes: expected size@stride"},
           Wrong{"/placement/rows/0/axes", "\"16@1\"", "placement.rows[0].axes: expected size@stride"},
           Wrong{"/placement/rows/0/axes", "\"2@1,2@1,2@1,2@1\"", "placement.rows[0].axes: expected size@stride"},
           Wrong{"/placement/rows/0/axes", "\"9223372036854775807@2\"", "placement.rows[0].axes: expected size@stride"},
           Wrong{"/placement/rows/0/collective", "\"allgossip\"",
                 "placement.rows[0].collective: expected a collective"},
           Wrong{"/placement/rows/0/calls", "\"many\"", "placement.rows[0].calls: expected a number"},
           Wrong{"/placement/rows/0/bytes", "1e19", "placement.rows[0].bytes: expected a number"},
       }) {
    Json report = recorded();
    report[Json::json_pointer(wrong.pointer)] = Json::parse(wrong.value);
    const Outcome outcome = advise(report.dump());
    expect_refused(outcome, wrong.words);
    EXPECT_NE(outcome.status.message().find("report.json"), std::string::npos) << outcome.status.message();
  }
}

TEST(Advise, RefusesWhatIsMissing) {
  for (const char* member : {"mpi", "ranks", "rows", "placement"}) {
    Json report = recorded();
    report.erase(member);
    expect_refused(advise(report.dump()), std::string(member) + ": expected");
  }
  for (const char* member : {"network_seconds_per_byte", "ranks_per_core", "ranks", "rows"}) {
    Json report = recorded();
    report["placement"].erase(member);
    expect_refused(advise(report.dump()), std::string("placement.") + member + ": expected");
  }
  for (const char* member : {"axes", "collective", "calls", "bytes"}) {
    Json report = recorded();
    report["placement"]["rows"][0].erase(member);
    expect_refused(advise(report.dump()), std::string("placement.rows[0].") + member + ": expected");
  }
}

TEST(Advise, RefusesWhatIsNoReport) {
  expect_refused(advise(""), "expected JSON");
  expect_refused(advise("<!DOCTYPE html>"), "expected JSON");
  expect_refused(advise("[]"), "expected an object");
  expect_refused(advise("{\"mpi\": 1e999}"), "expected JSON");
  expect_refused(advise(std::string(4096, '[')), "levels deep");
  expect_refused(call(advise_command(), {"absent/report.json"}), "absent/report.json");
  const std::string whole = recorded().dump();
  for (std::size_t length = 0; length < whole.size(); length += 7)
    expect_refused(advise(whole.substr(0, length)), "expected JSON");
}

// Whatever bytes change: an answer or a refusal, in one line.
TEST(Advise, SurvivesDamagedFiles) {
  const std::string whole = recorded().dump();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits)
      text[random() % text.size()] = "0123456789-[]{}\",:.e@ "[random() % 22];
    const auto job = read_report(text);
    if (!job.ok()) {
      EXPECT_EQ(job.status().message().find('\n'), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace plait::tuner
