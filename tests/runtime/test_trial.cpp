#include "runtime/trial/trial.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "runtime/trial/learned.h"

namespace plait::runtime {
namespace {

using Times = std::function<std::uint64_t(int candidate)>;

// One call as a rank makes it; where the trial has its samples, this rank's are those of all.
void make_call(Trial& trial, const Times& nanoseconds) {
  const bool timed = trial.due();
  trial.count();
  if (!timed) return;
  trial.note(nanoseconds(trial.candidate()));
  if (trial.complete()) trial.conclude();
}

int calls_until_settled(Trial& trial, const Times& nanoseconds) {
  int calls = 0;
  for (; trial.open() && calls < 1000; ++calls) make_call(trial, nanoseconds);
  return calls;
}

Times constant(std::array<std::uint64_t, Trial::most_candidates> times) {
  return [times](int candidate) { return times[static_cast<std::size_t>(candidate)]; };
}

void make_calls(Trial& trial, const Times& nanoseconds, int calls) {
  for (int call = 0; call < calls; ++call) make_call(trial, nanoseconds);
}

TEST(Trial, SettlesOnTheFastestCandidate) {
  for (int fastest = 0; fastest < Trial::most_candidates; ++fastest) {
    std::array<std::uint64_t, Trial::most_candidates> times{1000, 1000, 1000, 1000};
    times[static_cast<std::size_t>(fastest)] = 700;
    Trial trial(Trial::most_candidates);
    const int calls = calls_until_settled(trial, constant(times));
    EXPECT_EQ(trial.taken(), fastest);
    EXPECT_EQ(trial.taken_nanoseconds(), 700u);
    EXPECT_LE(calls, 15 * Trial::most_candidates);
  }
}

TEST(Trial, TakesAPlanOnlyWhereItIsFasterThanTheHost) {
  Trial equal(2), faster(2);
  calls_until_settled(equal, constant({1000, 1000}));
  calls_until_settled(faster, constant({1000, 999}));
  EXPECT_EQ(equal.taken(), Trial::host);
  EXPECT_EQ(faster.taken(), 1);
}

TEST(Trial, PrefersTheBestPredictedPlanToOnesThatAreHardlyFaster) {
  Trial hardly(3), clearly(3);
  calls_until_settled(hardly, constant({2000, 1000, 980}));
  calls_until_settled(clearly, constant({2000, 1000, 950}));
  EXPECT_EQ(hardly.taken(), 1);
  EXPECT_EQ(clearly.taken(), 2);
}

TEST(Trial, SlowCandidatesHaveFewCalls) {
  Trial trial(2);
  int of_host = 0;
  calls_until_settled(trial, [&](int candidate) {
    of_host += candidate == Trial::host ? 1 : 0;
    return candidate == Trial::host ? 50'000 : 1000;
  });
  EXPECT_EQ(of_host, 3);
}

TEST(Trial, TheFirstCallsOfACandidateDoNotCount) {
  std::array<int, Trial::most_candidates> calls{};
  Trial trial(3);
  calls_until_settled(trial, [&](int candidate) {
    const bool first = calls[static_cast<std::size_t>(candidate)]++ == 0;
    return first ? 1'000'000u : candidate == 2 ? 500u : 600u;
  });
  EXPECT_EQ(trial.taken(), 2);
}

// A program that makes long and short calls of one class in turn.
TEST(Trial, IsFairToProgramsThatAlternateBetweenSizes) {
  for (int period = 2; period <= 4; ++period) {
    Trial trial(3);
    int call = 0;
    calls_until_settled(trial, [&](int candidate) {
      const std::uint64_t length = call++ % period == 0 ? 1900 : 1000;
      return length * (candidate == 2 ? 80 : 100);
    });
    EXPECT_EQ(trial.taken(), 2) << "period " << period;
  }
}

TEST(Trial, OpensAgainWhenTheSettledCandidateHasBecomeSlower) {
  Trial trial(2);
  calls_until_settled(trial, constant({1000, 500}));
  make_calls(trial, constant({1000, 590}), 100'000);
  EXPECT_EQ(trial.trials(), 1) << "18 % are not enough";
  make_calls(trial, constant({1000, 1300}), 40'000);
  EXPECT_EQ(trial.trials(), 2);
  EXPECT_EQ(trial.taken(), Trial::host);
  EXPECT_FALSE(trial.open());
}

TEST(Trial, OneSlowLookIsNotEnough) {
  Trial trial(2);
  calls_until_settled(trial, constant({1000, 500}));
  int slow = 5;
  make_calls(
      trial, [&](int) { return slow-- > 0 ? 900 : 500; }, 100'000);
  EXPECT_EQ(trial.trials(), 1);
}

TEST(Trial, LooksLessAndLessOften) {
  Trial trial(2);
  int timed = 0;
  const Times counting = [&](int candidate) {
    ++timed;
    return candidate == Trial::host ? 1000u : 500u;
  };
  calls_until_settled(trial, counting);
  timed = 0;
  make_calls(trial, counting, 1'000'000);
  EXPECT_LT(timed, 400);
  EXPECT_GT(timed, 200);
}

TEST(Trial, BeginsAfterItsCallsBefore) {
  Trial trial(2, 1, 10);
  int timed = 0;
  const Times counting = [&](int) { return ++timed, 100u; };
  make_calls(trial, counting, 10);
  EXPECT_EQ(timed, 0);
  EXPECT_EQ(trial.taken(), 1) << "the best predicted plan";
  make_calls(trial, counting, 1);
  EXPECT_EQ(timed, 1);
  EXPECT_TRUE(trial.open());
  calls_until_settled(trial, constant({100, 50}));
  EXPECT_EQ(trial.taken(), 1);
}

TEST(Trial, WhatIsKnownIsNotTriedButWatched) {
  Trial trial(3, {.candidate = 2, .taken_nanoseconds = 500, .host_nanoseconds = 0});
  EXPECT_FALSE(trial.open());
  EXPECT_EQ(trial.taken(), 2);
  EXPECT_EQ(trial.saved_nanoseconds(), 0u);
  make_calls(trial, constant({400, 900, 800}), 4000);
  EXPECT_EQ(trial.trials(), 1);
  EXPECT_EQ(trial.taken(), Trial::host);
}

TEST(Trial, WhatIsKnownSavesFromTheFirstCall) {
  Trial trial(2, {.candidate = 1, .taken_nanoseconds = 400, .host_nanoseconds = 1000});
  make_calls(trial, constant({1000, 400}), 100);
  EXPECT_EQ(trial.saved_nanoseconds(), 100u * 600);
}

TEST(Trial, CountsWhatItsCallsSaved) {
  Trial trial(2);
  calls_until_settled(trial, constant({1000, 400}));
  EXPECT_EQ(trial.saved_nanoseconds(), 0u);
  make_calls(trial, constant({1000, 400}), 10'000);
  EXPECT_EQ(trial.saved_nanoseconds(), 10'000u * 600);
  make_calls(trial, constant({1000, 2000}), 50'000);
  EXPECT_EQ(trial.taken(), Trial::host);
  const std::uint64_t saved = trial.saved_nanoseconds();
  make_calls(trial, constant({1000, 2000}), 50'000);
  EXPECT_EQ(trial.saved_nanoseconds(), saved);
}

TEST(Trial, ASampleMayBeOfSeveralCallsInARow) {
  Trial trial(2, 4);
  int call = 0, last = -1;
  const int calls = calls_until_settled(trial, [&](int candidate) {
    EXPECT_TRUE(call % 4 == 0 || candidate == last) << call;
    last = candidate;
    return (candidate == 1 ? 900u : 1000u) + (call++ % 4 == 0 ? 400 : 0);
  });
  EXPECT_EQ(calls % 8, 0);
  EXPECT_EQ(trial.taken(), 1);
  EXPECT_EQ(trial.taken_nanoseconds(), 1000u);
}

class NoisyTrials : public testing::TestWithParam<unsigned> {};

// Times vary by a tenth, and one call of twenty waits for a core.
TEST_P(NoisyTrials, SettleOnTheFastestAndStayThere) {
  std::mt19937_64 random(GetParam());
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  const std::array<double, 3> usual = {1300, 1500, 1000};
  const Times noisy = [&](int candidate) {
    std::uniform_real_distribution<double> spread(0.95, 1.05), part(0, 1);
    const double late = part(random) < 0.05 ? 20'000 : 0;
    return static_cast<std::uint64_t>(usual[static_cast<std::size_t>(candidate)] * spread(random) + late);
  };
  Trial trial(3);
  EXPECT_LE(calls_until_settled(trial, noisy), 45);
  EXPECT_EQ(trial.taken(), 2);
  make_calls(trial, noisy, 200'000);
  EXPECT_EQ(trial.trials(), 1);
  EXPECT_EQ(trial.taken(), 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, NoisyTrials, testing::Range(1u, 41u));

TEST(TuningRecords, GoThroughTheirText) {
  const std::vector<TuningRecord> tuning_records = {
      {Collective::allreduce, 4, "RS.1(shared) AG.1(shared) x8", 1234, 2000}, {Collective::barrier, 0, "host", 77, 77}};
  const std::vector<TuningRecord> found = parse_tuning_records(tuning_records_text(tuning_records));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].collective, Collective::allreduce);
  EXPECT_EQ(found[0].size_class, 4);
  EXPECT_EQ(found[0].plan, "RS.1(shared) AG.1(shared) x8");
  EXPECT_EQ(found[0].nanoseconds, 1234u);
  EXPECT_EQ(found[0].host_nanoseconds, 2000u);
  EXPECT_EQ(found[1].plan, "host");
}

TEST(TuningRecords, WhatIsNoTuningRecordIsLeftOut) {
  EXPECT_TRUE(parse_tuning_records("").empty());
  EXPECT_TRUE(parse_tuning_records("3 4\n99 1 1 1 host\n-1 1 1 1 host\nx y z u host\n3 4 5 6\n3 4 5 host").empty());
}

}  // namespace
}  // namespace plait::runtime
