// What the ranks of a job agree on when it starts, by ranks in one process that are given settings each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/log.h"
#include "runtime/job/agreement.h"
#include "tests/runtime/in_process_oob.h"

namespace plait::runtime {
namespace {

// The ranks of a job in one process as they are when it starts.
class WorldInProcess final : public World {
 public:
  explicit WorldInProcess(Oob& oob) : oob_(oob) {}
  int rank() const override { return oob_.rank(); }
  int ranks() const override { return oob_.ranks(); }
  bool gather_all(const void* mine, std::size_t bytes, void* all) override {
    ++steps;
    return !fails && oob_.gather_all(mine, bytes, all, "introduce themselves").ok();
  }
  bool all_say_yes(bool mine, const std::function<void()>& waiting) override {
    ++steps;
    if (waiting) waiting();
    waited += waiting ? 1 : 0;
    const std::array<std::int32_t, 1> own = {mine ? 1 : 0};
    std::array<std::int32_t, 1> all{};
    return reduce_all(oob_, own, all, Op::min, "say yes").ok() && all[0] != 0;
  }

  int steps = 0, waited = 0;
  bool fails = false;

 private:
  Oob& oob_;
};

using Settings = std::vector<std::string>;

class AgreementOf : public testing::Test {
 protected:
  using Give = std::function<Settings(int rank)>;
  using LookAt = std::function<std::string(const Job& job, const WorldInProcess& world)>;

  ~AgreementOf() override {
    std::filesystem::remove_all(folder);
    set_verbosity(Verbosity::warnings);
  }

  // What the first rank finds wrong that is not satisfied. What is said is in `said`.
  std::string agree(int ranks, const Attendance* attendance, const Give& give, const LookAt& look) {
    InProcessJob job(ranks);
    testing::internal::CaptureStderr();
    const std::string wrong = job.run([&](Oob& oob) -> std::string {
      WorldInProcess world(oob);
      world.fails = gather_fails;
      Agreement agreement(world, attendance);
      agreement.begin({.version = version_of ? version_of(oob.rank()) : "1.2.3",
                       .mpi_library = "An MPI 1.0, of somewhere",
                       .host = host,
                       .concurrent = oob.rank() == concurrent_rank},
                      give(oob.rank()));
      if (!agreement.all_well(true)) return "not all are well";
      agreement.agree();
      if (!agreement.all_well(true)) return "not all are well in the end";
      return look(*agreement.take(), world);
    });
    said = testing::internal::GetCapturedStderr();
    return wrong;
  }
  std::string agree(const Give& give, const LookAt& look) { return agree(4, &everybody, give, look); }
  // Every rank's calls are the host's, for that reason.
  std::string agree_off(const Give& give, const std::string& reason) {
    return agree(give, [&](const Job& job, const WorldInProcess&) {
      return job.off_reason == reason ? std::string() : "its reason is '" + std::string(job.off_reason) + "'";
    });
  }
  // How often a text was said.
  int times(const std::string& text) const {
    int count = 0;
    for (std::size_t at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++count;
    return count;
  }
  std::string file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder);
    const std::string path = folder / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string table(const std::string& name) {
    return file(name, R"({"plait_table": 1, "machine": ")" + name + R"(", "shapes": [{"shape": "1x4", "collectives": [
      {"collective": "allreduce", "ranges": [{"from": 1, "to": 1024, "plan": "RD.1(chain) BC.1(flat) x2"}]}]}]})");
  }

  const Attendance everybody{};
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("plait_agreement_" + std::to_string(getpid()));
  std::function<std::string(int rank)> version_of;
  plan::HostKind host = plan::HostKind::mpi;
  int concurrent_rank = -1;
  bool gather_fails = false;
  std::string said;
};

// What one rank is given, the others nothing.
std::function<Settings(int)> only(int rank, const std::string& setting) {
  return [=](int one) { return one == rank ? Settings{setting} : Settings{}; };
}
std::function<Settings(int)> all_have(const std::string& setting) {
  return [=](int) { return Settings{setting}; };
}

TEST_F(AgreementOf, RanksOfOneNodeKnowThatTheyAre) {
  EXPECT_EQ(agree([](int) { return Settings(); },
                  [](const Job& job, const WorldInProcess& world) -> std::string {
                    if (*job.off_reason != '\0') return job.off_reason;
                    if (job.ranks_on_node != 4 || job.ranks_on_machine != 4) return "other ranks on its node";
                    if (job.world_nodes != std::vector<int>(4, 0)) return "other nodes";
                    if (job.first_rank != (world.rank() == 0)) return "another first rank";
                    if (job.mpi_release != "An MPI 1.0") return job.mpi_release;
                    return job.reporting || job.tracing || job.any_concurrent ? "nobody asked for that" : "";
                  }),
            "");
}

// A process says each thing once.
TEST_F(AgreementOf, SettingsOrVersionsThatDifferLeaveAllToTheHost) {
  version_of = [](int rank) { return rank == 3 ? "1.2.4" : "1.2.3"; };
  EXPECT_EQ(agree_off([](int) { return Settings(); }, "settings differ between ranks"), "");
  EXPECT_EQ(times("the PLAIT_* variables or versions differ between ranks"), 1) << said;
  version_of = nullptr;
  for (const char* setting :
       {"PLAIT_PLAN=AR.1", "PLAIT_SETUP_CALLS=17", "PLAIT_CHANNELS=tcp", "PLAIT_RAILS=1", "PLAIT_DEVICE_DIRECT=auto"})
    EXPECT_EQ(agree_off(only(2, setting), "settings differ between ranks"), "") << setting;
}

TEST_F(AgreementOf, HowMuchIsSaidMayDiffer) { EXPECT_EQ(agree_off(only(1, "PLAIT_VERBOSE=0"), ""), ""); }

TEST_F(AgreementOf, OneRankThatIsDisabledDisablesAll) {
  EXPECT_EQ(agree_off(only(3, "PLAIT_DISABLE=1"), "PLAIT_DISABLE is set"), "");
  EXPECT_EQ(said, "");
}

TEST_F(AgreementOf, WhatOneRankAsksForAllTakePartIn) {
  concurrent_rank = 1;
  EXPECT_EQ(agree(
                [&](int rank) {
                  if (rank == 2) return Settings{"PLAIT_REPORT=1"};
                  return rank == 3 ? Settings{"PLAIT_TRACE=" + std::string(folder / "trace.json")} : Settings{};
                },
                [](const Job& job, const WorldInProcess& world) -> std::string {
                  if (!job.reporting || !job.tracing || !job.any_concurrent) return "it takes no part";
                  return job.concurrent == (world.rank() == 1) ? "" : "it takes itself for another";
                }),
            "");
}

// ---- Files ----

std::string has_table(const Job& job, const WorldInProcess&) { return job.table != nullptr ? "" : "it has no table"; }
std::string has_none(const Job& job, const WorldInProcess&) {
  if (*job.off_reason != '\0') return job.off_reason;
  return job.table == nullptr && job.overlap == nullptr && !job.learns_overlap ? "" : "it has one";
}

TEST_F(AgreementOf, ATableThatAllHaveIsTaken) {
  EXPECT_EQ(agree(all_have("PLAIT_TABLE=" + table("lab")), has_table), "");
  EXPECT_EQ(said, "");
}

TEST_F(AgreementOf, TheSameTableInTwoFilesIsTaken) {
  const std::string one = table("lab"), other = folder / "copy";
  std::filesystem::copy_file(one, other);
  EXPECT_EQ(agree([&](int rank) { return Settings{"PLAIT_TABLE=" + (rank == 1 ? one : other)}; }, has_table), "");
}

TEST_F(AgreementOf, ATableThatOneRankAloneHasIsNotTaken) {
  EXPECT_EQ(agree(only(1, "PLAIT_TABLE=" + table("lab")), has_none), "");
  EXPECT_EQ(times("PLAIT_TABLE is not used: rank 0 was not given one"), 1) << said;
}

TEST_F(AgreementOf, TablesThatDifferAreNotTaken) {
  const std::string one = table("lab"), other = table("hall");
  EXPECT_EQ(agree([&](int rank) { return Settings{"PLAIT_TABLE=" + (rank == 2 ? one : other)}; }, has_none), "");
  EXPECT_EQ(times("PLAIT_TABLE is not used: the files differ between ranks"), 1) << said;
}

TEST_F(AgreementOf, TheFirstRankWhoseTableIsWrongSaysWhy) {
  const std::string good = table("lab"), wrong = file("wrong", "{");
  EXPECT_EQ(agree([&](int rank) { return Settings{"PLAIT_TABLE=" + (rank >= 2 ? wrong : good)}; }, has_none), "");
  EXPECT_EQ(times("PLAIT_TABLE is not used: "), 1) << said;
  EXPECT_EQ(times(wrong), 1) << said;
}

TEST_F(AgreementOf, AllLearnOverlapOrNone) {
  EXPECT_EQ(agree(all_have("PLAIT_OVERLAP=auto"),
                  [](const Job& job, const WorldInProcess&) { return job.learns_overlap ? "" : "it does not learn"; }),
            "");
  EXPECT_EQ(agree(only(2, "PLAIT_OVERLAP=auto"), has_none), "");
  EXPECT_EQ(times("PLAIT_OVERLAP is not used: rank 0 was not given one"), 1) << said;
}

// ---- Who is there ----

TEST_F(AgreementOf, WhereSomeRanksAreAbsentNobodyIsSpokenTo) {
  const Attendance some{.known = true, .first_present = 1, .first_absent = 2};
  EXPECT_EQ(agree(
                4, &some, [](int) { return Settings(); },
                [](const Job& job, const WorldInProcess& world) -> std::string {
                  if (world.steps != 0) return "it speaks to others";
                  return job.off_reason == std::string("some ranks lack Plait") ? "" : "it is not off";
                }),
            "");
  EXPECT_EQ(times("rank 2 runs without libplait.so"), 1) << said;
}

TEST_F(AgreementOf, SpeaksOfTheHostThatThereIs) {
  const Attendance some{.known = true, .first_present = 1, .first_absent = 2};
  host = plan::HostKind::layers;
  const LookAt is_off = [](const Job& job, const WorldInProcess&) {
    return *job.off_reason != '\0' ? "" : "it is not off";
  };
  EXPECT_EQ(agree(
                4, &some, [](int) { return Settings(); }, is_off),
            "");
  EXPECT_EQ(times("without the UCC component, or with that of another version; every call goes to UCC's next layer"), 1)
      << said;
  EXPECT_EQ(agree(only(2, "PLAIT_TRIAL=0"), is_off), "");
  EXPECT_EQ(times("every call goes to UCC's next layer"), 1) << said;
  EXPECT_EQ(times("MPI"), 0) << said;
}

TEST_F(AgreementOf, WhereNothingIsKnownOnlyTheFirstQuestionMayTakeLong) {
  const Attendance unknown{.known = false};
  EXPECT_EQ(agree(
                4, &unknown, [](int) { return Settings(); },
                [](const Job& job, const WorldInProcess& world) -> std::string {
                  if (*job.off_reason != '\0') return job.off_reason;
                  return world.waited == 1 && world.steps == 3 ? "" : "it waits " + std::to_string(world.waited);
                }),
            "");
  EXPECT_EQ(said, "");
}

TEST_F(AgreementOf, ARankThatStartsByItselfAsksNobody) {
  const std::string setting = "PLAIT_TABLE=" + table("lab");
  EXPECT_EQ(agree(3, nullptr, only(1, setting),
                  [](const Job& job, const WorldInProcess& world) -> std::string {
                    if (world.steps != 0) return "it speaks to others";
                    return (job.table != nullptr) == (world.rank() == 1) ? "" : "another's table";
                  }),
            "");
}

TEST_F(AgreementOf, RanksThatCannotGatherAreOff) {
  gather_fails = true;
  EXPECT_EQ(agree_off([](int) { return Settings(); }, "the ranks could not agree"), "");
}

TEST_F(AgreementOf, ARankThatIsNotWellIsHeardByAll) {
  InProcessJob job(3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    WorldInProcess world(oob);
    Agreement agreement(world, &everybody);
    return agreement.all_well(oob.rank() != 1) ? "it takes all for well" : "";
  }),
            "");
}

}  // namespace
}  // namespace plait::runtime
