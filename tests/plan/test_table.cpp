// Tuning tables: written and read, refused with the place, and used by the planner.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plan/choose/planner.h"
#include "plan/choose/table.h"
#include "plan/model/fingerprint.h"

namespace plait::plan {
namespace {

constexpr const char* small_table = R"json({"plait_table": 1, "machine": "lab",
  "fingerprint": {"mpi": "Open MPI v4.1.4", "shape": "4x2"},
  "shapes": [{"shape": "4x2", "collectives": [
    {"collective": "allreduce", "ranges": [
      {"from": 1, "to": 4096, "plan": "AR.12(rd) x1", "seconds_from": 1e-5, "seconds_to": 2e-5},
      {"from": 4096, "to": 5000, "plan": "host", "seconds_from": 2e-5, "seconds_to": 3e-5},
      {"from": 1048576, "to": 1073741825, "plan": "RS.2(ring) AR.1(ring) AG.2(ring) x4"}]},
    {"collective": "allgather", "ranges": [{"from": 1, "to": 1000, "plan": "AG.2(ring) AG.1(ring) x1"}]}]}]})json";

std::string with(const std::string& from, const std::string& to) {
  std::string text = small_table;
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Table, IsReadAsItWasWritten) {
  const auto table = parse_table(small_table);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->machine, "lab");
  EXPECT_EQ(table->fingerprint.at("shape"), "4x2");
  ASSERT_NE(table->shape("4x2"), nullptr);
  EXPECT_EQ(table->shape("2x4"), nullptr);
  const std::string written = table_json(*table);
  const auto again = parse_table(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(table_json(*again), written);
}

TEST(Table, WhatIsWrongIsNamedWithItsPlace) {
  const std::string range = "shapes[0].collectives[0].ranges[1].";
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON"},
      {std::string(small_table).substr(0, 200), "JSON"},
      {"[]", "the document: expected an object"},
      {with("\"plait_table\": 1", "\"plait_table\": 2"), "plait_table: expected 1"},
      {with("\"plait_table\": 1, ", ""), "plait_table: expected 1"},
      {with("\"from\": 4096", "\"from\": NaN"), "JSON"},
      {with("\"from\": 4096", "\"from\": -1"), range + "from: expected a whole number"},
      {with("\"from\": 4096", "\"from\": 4096.5"), range + "from: expected a whole number"},
      {with("\"from\": 4096", "\"from\": 1e999"), "JSON"},
      {with("\"from\": 4096", "\"from\": 99999999999999999999"), range + "from: expected a whole number"},
      {with("\"from\": 4096", "\"from\": 4095"), range + "from: expected at least 4096"},
      {with("\"to\": 5000", "\"to\": 4096"), range + "to: expected more than 4096"},
      {with("\"to\": 5000", "\"to\": 2000000"), "ranges[2].from: expected at least 2000000"},
      {with("\"seconds_to\": 3e-5", "\"seconds_to\": -1"), range + "seconds_to: expected a number of seconds"},
      {with("\"seconds_to\": 3e-5", "\"host_seconds_to\": -1"),
       range + "host_seconds_to: expected a number of seconds"},
      {with("\"plan\": \"host\"", "\"plan\": \"\""), range + "plan: expected"},
      {with("\"plan\": \"host\"", "\"plan\": 3"), range + "plan: expected"},
      {with("\"plan\": \"host\", ", ""), range + "plan: expected"},
      {with("\"plan\": \"host\"", "\"plan\": \"" + std::string(2000, 'x') + "\""), range + "plan: expected at most"},
      {with("\"plan\": \"host\"", "\"plan\": \"host\", \"rate\": 1"), range + "\"rate\" is no member"},
      {with("allreduce", "allruduce"), "collectives[0].collective: expected"},
      {with("allreduce", "alltoallv"), "collectives[0].collective: expected"},
      {with("allreduce", "allgather"), "collectives[1].collective: expected each collective once"},
      {with("\"shape\": \"4x2\", \"c", "\"shape\": \"4x\", \"c"), "shapes[0].shape: expected"},
      {with("\"shape\": \"4x2\", \"c", "\"shape\": \"4x2x1\", \"c"), "shapes[0].shape: expected 4x2"},
      {with("\"mpi\": \"Open MPI v4.1.4\"", "\"mpi\": 4"), "fingerprint: expected"},
      {with("\"collectives\": [", "\"collectives\": [], \"x\": ["), "collectives: expected a list"},
      {std::string(100000, '['), "nested"},
  };
  for (const auto& [text, words] : cases) {
    const auto table = parse_table(text);
    ASSERT_FALSE(table.ok()) << words;
    EXPECT_EQ(table.status().code(), Code::invalid);
    EXPECT_NE(table.status().message().find(words), std::string::npos) << words << ": " << table.status().message();
  }
}

TEST(Table, LookUpsKnowTheRanges) {
  const auto table = parse_table(small_table);
  const TunedShape& shape = *table->shape("4x2");
  const auto plan = [&](Call call) {
    const TunedRange* range = tuned_range(shape, call, 8);
    return range != nullptr ? range->plan : std::string();
  };
  const auto allreduce = [&](std::size_t bytes) { return plan({.collective = Collective::allreduce, .count = bytes}); };
  EXPECT_EQ(allreduce(0), "");
  EXPECT_EQ(allreduce(1), "AR.12(rd) x1");
  EXPECT_EQ(allreduce(4095), "AR.12(rd) x1");
  EXPECT_EQ(allreduce(4096), "host");
  EXPECT_EQ(allreduce(5000), "");
  EXPECT_EQ(allreduce(1 << 30), "RS.2(ring) AR.1(ring) AG.2(ring) x4");
  EXPECT_EQ(allreduce((std::size_t{1} << 30) + 1), "");
  EXPECT_EQ(plan({.collective = Collective::allreduce, .count = 8, .commutative = false}), "");
  EXPECT_EQ(plan({.collective = Collective::bcast, .count = 8}), "");
  const std::vector<std::size_t> counts(8, 100), many(8, 1000);
  EXPECT_EQ(plan({.collective = Collective::allgatherv, .counts = counts.data()}), "AG.2(ring) AG.1(ring) x1");
  EXPECT_EQ(plan({.collective = Collective::allgatherv, .counts = many.data()}), "");
}

// Times between the ends of a range lie on a line in logarithms.
TEST(Table, SaysWhatACallSavesWhereTheHostWasMeasured) {
  const auto table = parse_table(with("\"seconds_to\": 2e-5}",
                                      "\"seconds_to\": 4e-5, \"host_seconds_from\": 4e-5, "
                                      "\"host_seconds_to\": 16e-5}"));
  ASSERT_TRUE(table.ok()) << table.status().message();
  const TunedShape& shape = *table->shape("4x2");
  const auto saved = [&](std::size_t bytes) {
    return saved_seconds(shape, {.collective = Collective::allreduce, .count = bytes}, 8);
  };
  EXPECT_NEAR(saved(1), 3e-5, 1e-9);
  EXPECT_NEAR(saved(64), 6e-5, 1e-8) << "in the middle of 1 and 4095: 8e-5 - 2e-5";
  EXPECT_NEAR(saved(4095), 12e-5, 1e-9);
  EXPECT_EQ(saved(4096), 0) << "the host has it";
  EXPECT_EQ(saved(1 << 21), 0) << "not measured";
  EXPECT_EQ(saved(5000), 0) << "in no range";
  EXPECT_EQ(parse_table(table_json(*table))->shape("4x2")->collectives[0].ranges[0].host_seconds_to, 16e-5);
}

TEST(Fingerprint, NamesAnMpiLibraryByItsFirstLine) {
  EXPECT_EQ(mpi_library_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu"), "MPICH Version: 4.0.2");
  EXPECT_EQ(mpi_release_name("MPICH Version: 4.0.2"), "MPICH Version: 4.0.2");
  const std::string library = mpi_library_name("Open MPI v4.1.4, package: Debian OpenMPI, May 26, 2022");
  EXPECT_EQ(library, "Open MPI v4.1.4, package: Debian OpenMPI, May 26, 2022");
  EXPECT_EQ(mpi_release_name(library), "Open MPI v4.1.4");
  EXPECT_EQ(mpi_release_name(mpi_library_name("")), "");
}

TEST(Table, FingerprintsFitUnlessBothSayOtherwise) {
  EXPECT_EQ(mismatch({}, {{"mpi", "a"}}), "");
  EXPECT_EQ(mismatch({{"mpi", "a"}, {"rack", "7"}}, {{"mpi", "a"}}), "");
  EXPECT_EQ(mismatch({{"mpi", "a"}}, {{"mpi", "b"}}), "mpi");
  EXPECT_EQ(mismatch({{"shape", "4x2"}}, {{"shape", "2x2"}}), "");
}

TEST(Table, FilesAreRefusedByTheirSizeAndKind) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "plait_test_table.json";
  { std::ofstream(path) << small_table; }
  EXPECT_TRUE(read_table(path).ok());
  std::filesystem::resize_file(path, std::uintmax_t{1} << 30);  // sparse: takes no space
  const auto large = read_table(path);
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.status().message().find("larger than 4 MiB"), std::string::npos) << large.status().message();
  std::filesystem::remove(path);
  EXPECT_FALSE(read_table(path).ok());
  EXPECT_FALSE(read_table("/dev/zero").ok());
  EXPECT_FALSE(read_table("/").ok());
}

// ---- the planner

std::string chosen(Planner& planner, Collective collective, std::size_t bytes) {
  const Choice choice = planner.choose({.collective = collective, .count = bytes});
  return choice.plan != nullptr ? choice.plan->name : std::string(choice.reason);
}

PlannerOptions with_table(const std::string& text) {
  auto table = parse_table(text);
  EXPECT_TRUE(table.ok()) << table.status().message();
  PlannerOptions options;
  options.table = std::make_shared<const TuningTable>(std::move(*table));
  options.warns = false;
  return options;
}

const std::vector<int> four_nodes_of_two = {2, 2, 2, 2};

TEST(Table, ThePlannerTakesItsPlans) {
  Planner planner(Hierarchy::nodes_of(four_nodes_of_two), 0, with_table(small_table));
  Planner untold(Hierarchy::nodes_of(four_nodes_of_two), 0, {});
  EXPECT_EQ(chosen(planner, Collective::allreduce, 100), "AR.12(rd)");
  EXPECT_EQ(chosen(planner, Collective::allreduce, 4095), "AR.12(rd)");
  EXPECT_EQ(chosen(planner, Collective::allreduce, 4096), reasons::host_is_faster);
  EXPECT_EQ(chosen(planner, Collective::allreduce, 5000), chosen(untold, Collective::allreduce, 5000));
  EXPECT_EQ(chosen(planner, Collective::allreduce, 1 << 21), "RS.2(ring) AR.1(ring) AG.2(ring) x4");
  EXPECT_EQ(chosen(planner, Collective::bcast, 100), chosen(untold, Collective::bcast, 100));
}

TEST(Table, OfOtherShapesSaysNothing) {
  Planner planner(Hierarchy::nodes_of(std::vector<int>{2, 2}), 0, with_table(small_table));
  Planner untold(Hierarchy::nodes_of(std::vector<int>{2, 2}), 0, {});
  EXPECT_EQ(chosen(planner, Collective::allreduce, 100), chosen(untold, Collective::allreduce, 100));
}

TEST(Table, AForcedPlanGoesBeforeIt) {
  PlannerOptions options = with_table(small_table);
  options.forced_plan = "RD.12(flat) BC.12(flat)";
  Planner planner(Hierarchy::nodes_of(four_nodes_of_two), 0, options);
  EXPECT_EQ(chosen(planner, Collective::allreduce, 100), "RD.12(flat) BC.12(flat)");
}

TEST(Table, TheHostIsNotTakenWhereItMustNotBe) {
  PlannerOptions options = with_table(small_table);
  options.host_when_faster = false;
  Planner planner(Hierarchy::nodes_of(four_nodes_of_two), 0, options);
  EXPECT_NE(chosen(planner, Collective::allreduce, 4096), reasons::host_is_faster);
}

TEST(Table, APlanThatDoesNotFitLeavesTheCallToTheModel) {
  Planner untold(Hierarchy::nodes_of(four_nodes_of_two), 0, {});
  for (const char* plan : {"AG.12(ring) x1", "AR.123(ring) x1", "nonsense", "AR.12(rd) x4096 @5", "pairwise"}) {
    Planner planner(Hierarchy::nodes_of(four_nodes_of_two), 0, with_table(with("AR.12(rd) x1", plan)));
    EXPECT_EQ(chosen(planner, Collective::allreduce, 100), chosen(untold, Collective::allreduce, 100)) << plan;
  }
}

TEST(Table, EveryRankTakesTheSame) {
  for (int rank = 0; rank < 8; ++rank) {
    Planner planner(Hierarchy::nodes_of(four_nodes_of_two), rank, with_table(small_table));
    EXPECT_EQ(chosen(planner, Collective::allreduce, 1 << 21), "RS.2(ring) AR.1(ring) AG.2(ring) x4");
  }
}

}  // namespace
}  // namespace plait::plan
