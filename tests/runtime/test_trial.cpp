#include "runtime/trial/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "runtime/trial/belief.h"
#include "runtime/trial/learned.h"

namespace plait::runtime {
namespace {

using Times = std::function<std::uint64_t(int candidate)>;

// The host is expected to be 1.6 times slower, and plans to be about as fast as the first.
std::vector<Prospect> usual(int candidates) {
  std::vector<Prospect> prospects(static_cast<std::size_t>(candidates), {1.05, 0.2});
  prospects[Trial::host] = {1.6, 0.7};
  prospects[1] = {1, 0.2};
  return prospects;
}

Trial usual_trial(int candidates, const TrialTerms& terms = {}) { return Trial(usual(candidates), terms); }

// One call as a rank makes it; where the trial has its samples, this rank's are those of all. What the call took.
std::uint64_t make_call(Trial& trial, const Times& nanoseconds, std::size_t bytes = 0) {
  const bool timed = trial.due();
  trial.count();
  if (!timed) return nanoseconds(trial.taken());
  const std::uint64_t took = nanoseconds(trial.candidate());
  trial.note(took, bytes);
  if (trial.complete()) trial.conclude();
  return took;
}

int calls_until_settled(Trial& trial, const Times& nanoseconds) {
  int calls = 0;
  for (; trial.open() && calls < 1'000'000; ++calls) make_call(trial, nanoseconds);
  return calls;
}

Times constant(std::array<std::uint64_t, Trial::most_candidates> times) {
  return [times](int candidate) { return times[static_cast<std::size_t>(candidate)]; };
}

double make_calls(Trial& trial, const Times& nanoseconds, int calls) {
  double sum = 0;
  for (int call = 0; call < calls; ++call) sum += static_cast<double>(make_call(trial, nanoseconds));
  return sum;
}

// What is expected: by how much it is longer than nothing.
double mean(const Belief& belief) { return belief.loss(0); }

TEST(Belief, IsWhatWasExpectedUntilSomethingIsSeen) {
  const Belief equal({1, 0.2}), slow({8, 0.2});
  EXPECT_NEAR(mean(equal), 1, 0.02);
  EXPECT_NEAR(mean(slow), 8, 0.2);
  EXPECT_NEAR(equal.loss(1) - equal.gain(1, 0), mean(equal) - 1, 1e-9);
  EXPECT_LT(slow.gain(1, 0), 1e-6);
}

TEST(Belief, FollowsWhatIsSeen) {
  for (const double truth : {0.3, 0.7, 1.0, 1.5, 6.0}) {
    Belief belief({1.6, 0.7});
    for (int i = 0; i < 4; ++i) belief.see(truth, 0.1);
    EXPECT_NEAR(mean(belief), truth, 0.05 * truth) << truth;
  }
}

TEST(Belief, TakesWhatIsUnlikelyForADisturbance) {
  Belief plan({1, 0.2}), host({1.6, 0.7});
  plan.see(15, 0.1);
  host.see(4, 0.1);
  EXPECT_LT(mean(plan), 1.3) << "a plan is not so wrongly predicted";
  EXPECT_GT(mean(host), 3) << "but a host may be that slow";
}

TEST(Belief, GainsNoMoreThanALimitLeaves) {
  const Belief belief({0.8, 0.5});
  EXPECT_LT(belief.gain(1, 0.95), 0.05);
  EXPECT_EQ(belief.gain(1, 1), 0);
  EXPECT_GT(belief.gain(1, 0), 0.2);
}

TEST(Belief, KnowsNothingBeyondItsEnds) {
  Belief belief({1, 0.2});
  for (const double ratio : {1e-9, 1e9}) {
    Belief seen = belief;
    for (int i = 0; i < 20; ++i) seen.see(ratio, 0.06);
    EXPECT_GE(mean(seen), 1.0 / 64);
    EXPECT_LE(mean(seen), 16);
  }
}

TEST(Trial, SettlesOnTheFastestCandidate) {
  for (int fastest = 0; fastest < Trial::most_candidates; ++fastest) {
    std::array<std::uint64_t, Trial::most_candidates> times{1000, 1000, 1000, 1000};
    times[static_cast<std::size_t>(fastest)] = 700;
    Trial trial = usual_trial(Trial::most_candidates);
    calls_until_settled(trial, constant(times));
    EXPECT_FALSE(trial.open());
    EXPECT_EQ(trial.taken(), fastest);
    EXPECT_EQ(trial.taken_nanoseconds(), 700u);
  }
}

TEST(Trial, StaysWithItsPlanWhereTheHostIsNoFaster) {
  Trial equal = usual_trial(2), faster = usual_trial(2);
  calls_until_settled(equal, constant({1000, 1000}));
  calls_until_settled(faster, constant({900, 1000}));
  EXPECT_EQ(equal.taken(), 1);
  EXPECT_EQ(faster.taken(), Trial::host);
}

TEST(Trial, PrefersTheBestPredictedPlanToOnesThatAreHardlyFaster) {
  Trial hardly = usual_trial(3), clearly = usual_trial(3);
  calls_until_settled(hardly, constant({2000, 1000, 980}));
  calls_until_settled(clearly, constant({2000, 1000, 950}));
  EXPECT_EQ(hardly.taken(), 1);
  EXPECT_EQ(clearly.taken(), 2);
}

TEST(Trial, SlowCandidatesHaveFewCalls) {
  Trial trial = usual_trial(2);
  int of_host = 0;
  for (int call = 0; call < 20'000; ++call) {
    make_call(trial, [&](int candidate) {
      of_host += candidate == Trial::host ? 1 : 0;
      return candidate == Trial::host ? 5000 : 1000;
    });
    if (call == 500) {
      EXPECT_EQ(of_host, 1) << "one slow sample is enough for a while";
    }
  }
  EXPECT_LE(of_host, 2);
}

// A rank without its core: the candidate waits for long, and gets another chance.
TEST(Trial, OneDisturbedSampleEndsNothing) {
  Trial trial = usual_trial(2);
  int of_host = 0;
  make_calls(
      trial, [&](int candidate) { return candidate == 1   ? 1000
                                         : of_host++ == 0 ? 200'000
                                                          : 600; }, 50'000);
  EXPECT_EQ(trial.taken(), Trial::host);
}

// The first three calls by which the others are judged were disturbed.
TEST(Trial, ADisturbedReferenceEndsNothing) {
  for (const std::uint64_t disturbed : {4'000'000u, 40'000'000u}) {
    Trial trial = usual_trial(4, {.predicted_nanoseconds = 500'000});
    int call = 0;
    calls_until_settled(trial, [&](int candidate) -> std::uint64_t {
      if (++call <= 3) return disturbed;
      return candidate == Trial::host ? 60'000 : 600'000;
    });
    EXPECT_EQ(trial.taken(), Trial::host) << disturbed;
    EXPECT_LT(call, 3000);
  }
}

TEST(Trial, WhatCannotWinIsNeverTried) {
  Trial trial = usual_trial(4, {.least_nanoseconds = 990, .hosts_least_nanoseconds = 990});
  int others = 0;
  calls_until_settled(trial, [&](int candidate) { return others += candidate != 1 ? 1 : 0, 1000u; });
  EXPECT_FALSE(trial.open());
  EXPECT_EQ(others, 0);
}

// The host may have a network of its own.
TEST(Trial, ALimitOfPlansIsNoneOfTheHosts) {
  Trial free = usual_trial(4, {.least_nanoseconds = 990});
  Trial bound = usual_trial(4, {.hosts_least_nanoseconds = 990});
  for (Trial* trial : {&free, &bound}) calls_until_settled(*trial, constant({500, 1000, 1000, 1000}));
  EXPECT_EQ(free.taken(), Trial::host);
  EXPECT_EQ(bound.taken(), 1);
}

// Less than a quarter of the first candidate's time is not the end.
TEST(Trial, FindsWhatIsFasterThanACandidateFarBelowTheReference) {
  Trial trial({{0.9, 0.7}, {1, 0.7}, {1, 2}}, {});
  calls_until_settled(trial, [&](int candidate) { return candidate == 0 ? 8000 : candidate == 1 ? 1000 : 500; });
  EXPECT_EQ(trial.taken(), 2);
}

TEST(Trial, ALimitThatWasFallenBelowIsNone) {
  Trial trial = usual_trial(2, {.least_nanoseconds = 1500});
  calls_until_settled(trial, constant({500, 1000}));
  EXPECT_EQ(trial.taken(), Trial::host);
}

TEST(Trial, BeginsWithTheHostWhereThatIsExpectedToBeFaster) {
  Trial trial({{0.7, 0.25}, {1, 0.2}}, {.calls_before = 5});
  EXPECT_EQ(trial.taken(), Trial::host);
  calls_until_settled(trial, constant({1000, 600}));
  EXPECT_EQ(trial.taken(), 1);
}

TEST(Trial, TriesTheHostSoonWhereThePlanIsFarSlowerThanPredicted) {
  Trial usual_one = usual_trial(2, {.burst = 4, .predicted_nanoseconds = 1000});
  Trial slow_one = usual_trial(2, {.burst = 4, .predicted_nanoseconds = 10});
  for (Trial* trial : {&usual_one, &slow_one}) make_calls(*trial, constant({500, 1000}), 40);
  EXPECT_EQ(usual_one.taken(), 1);
  EXPECT_EQ(slow_one.taken(), Trial::host);
}

// What a round costs besides its calls counts as well: of short calls many must have been there.
TEST(Trial, ShortCallsAreTriedLate) {
  for (const std::uint64_t meeting : {0u, 10'000u}) {
    Trial trial = usual_trial(2, {.burst = 4, .meeting_nanoseconds = meeting});
    int calls = 0;
    bool tried = false;
    for (; !tried && calls < 100'000; ++calls)
      make_call(trial, [&](int candidate) { return tried |= candidate == Trial::host, candidate == 1 ? 300 : 400; });
    if (meeting == 0) {
      EXPECT_LT(calls, 400);
    } else {
      EXPECT_GT(calls, 10'000 / (TrialTerms::usual_part * 300));
    }
  }
}

TEST(Trial, IsInformedOnceTheOthersWereTriedOrAreFarBehind) {
  Trial tried = usual_trial(2), known(usual(2), {}, {.candidate = 1, .taken_nanoseconds = 1, .host_nanoseconds = 2});
  EXPECT_FALSE(tried.informed());
  EXPECT_TRUE(known.informed());
  int of_host = 0, calls = 0;
  for (; !tried.informed() && calls < 1000; ++calls)
    make_call(tried,
              [&](int candidate) { return of_host += candidate == Trial::host ? 1 : 0, candidate == 1 ? 1000 : 1500; });
  EXPECT_LT(calls, 1000);
  EXPECT_GE(of_host, 1);
  Trial hopeless({{30, 0.2}, {1, 0.2}}, {});
  make_calls(hopeless, constant({30'000, 1000}), 4);
  EXPECT_TRUE(hopeless.informed());
}

TEST(Trial, SamplesMayTakeMoreOrNothing) {
  Trial eager = usual_trial(4, {.part = 10}), never = usual_trial(4, {.part = 0});
  std::array<std::uint64_t, Trial::most_candidates> times{900, 1000, 800, 1100};
  make_calls(eager, constant(times), 40);
  EXPECT_EQ(eager.taken(), 2);
  int others = 0;
  calls_until_settled(never, [&](int candidate) { return others += candidate != 1 ? 1 : 0, 1000u; });
  EXPECT_EQ(others, 0);
  EXPECT_FALSE(never.open());
}

// Not even of the candidate that is taken: the ranks would meet for it.
TEST(Trial, NothingIsTimedWhereSamplesMayTakeNothing) {
  Trial fresh(usual(4), {.part = 0}), known(usual(2), {.part = 0}, {1, 400, 1000});
  for (Trial* trial : {&fresh, &known})
    for (int call = 0; call < 100'000; ++call) {
      ASSERT_FALSE(trial->due()) << call;
      trial->count();
    }
}

// Calls until the first sample of the host.
int calls_until_tried(const TrialTerms& terms, std::uint64_t longer_first, std::uint64_t making) {
  Trial trial({{1, 0.5}, {1, 0.2}}, terms);
  bool tried = false;
  int call = 0;
  for (; !tried && call < 100'000; ++call) {
    const bool first = trial.due() && trial.begins_sample();
    if (first && making != 0) trial.note_making(2, making);
    make_call(trial,
              [&](int candidate) { return tried |= candidate == Trial::host, 1000 + (first ? longer_first : 0); });
  }
  return call;
}

TEST(Trial, WhatIsSpentBesidesSamplesKeepsToThePartToo) {
  const TrialTerms terms{.burst = 4};
  const int plain = calls_until_tried(terms, 0, 0);
  EXPECT_GE(calls_until_tried(terms, 10'000, 0), plain + 3 * 10'000 * 50 / 1000) << "first calls of bursts";
  EXPECT_GE(calls_until_tried(terms, 0, 10'000), plain + 3 * 10'000 * 50 / 1000) << "plans that were made";
  EXPECT_GE(calls_until_tried({.burst = 4, .meeting_nanoseconds = 5000, .agreeing_nanoseconds = 5000}, 0, 0),
            plain + (3 + 2) * 5000 * 50 / 1000)
      << "the round of the reference";
}

// The time that a plan took to make, not what is usual.
TEST(Trial, PlansThatTakeLongToMakeAreTriedLater) {
  const auto tried_after = [](std::uint64_t making) {
    Trial trial({{30, 0.2}, {1, 0.2}, {1, 0.3}}, {.calls_before = 10, .making_nanoseconds = 1000});
    trial.note_making(1, making);
    int call = 0;
    for (bool tried = false; !tried && call < 100'000; ++call)
      make_call(trial, [&](int candidate) { return tried |= candidate == 2, 1000; });
    return call;
  };
  EXPECT_LT(2 * tried_after(100), tried_after(50'000));
}

TEST(Trial, ATrialThatOpensAgainHasNoNewPartOfTheTimeBefore) {
  Trial trial({{0.9, 0.5}, {1, 0.2}}, {.part = 0.002});
  calls_until_settled(trial, constant({1'100, 1000}));
  make_calls(trial, constant({100'000'000, 1000}), 2000);
  double hosts = 0, all = 0;
  for (int call = 0; call < 400'000; ++call) {
    const bool host = trial.due() && trial.open() && trial.candidate() == Trial::host;
    const double took = static_cast<double>(make_call(trial, constant({40'000, call < 200'000 ? 1500u : 2300u})));
    all += took;
    if (host) hosts += took;
  }
  EXPECT_GE(trial.trials(), 2);
  EXPECT_LE(hosts, 0.002 * all + 40'000);
}

// All ranks go by the longest times, whatever their own: ranks on which all times are others, and other plans made.
TEST(Trial, GoesTheSameWayOnRanksWhoseTimesDiffer) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int burst = seed % 2 == 0 ? 1 : 4;
    const TrialTerms terms{.burst = burst, .calls_before = 3, .meeting_nanoseconds = 10, .agreeing_nanoseconds = 50};
    std::array<Trial, 2> ranks = {usual_trial(4, terms), usual_trial(4, terms)};
    std::array<std::array<double, 4>, 2> usual_times{};
    for (auto& times : usual_times)
      for (double& time : times) time = static_cast<double>(500 + random() % 2000);
    for (int call = 0; call < 5000; ++call) {
      ASSERT_EQ(ranks[0].due(), ranks[1].due()) << call;
      ASSERT_EQ(ranks[0].candidate(), ranks[1].candidate()) << call;
      ASSERT_EQ(ranks[0].taken(), ranks[1].taken()) << call;
      const bool timed = ranks[0].due();
      for (std::size_t rank = 0; rank < 2; ++rank) {
        Trial& trial = ranks[rank];
        trial.count();
        if (!timed) continue;
        if (random() % 4 == 0) trial.note_making(trial.candidate(), random() % 100'000);
        const double usual_time = usual_times[rank][static_cast<std::size_t>(trial.candidate())];
        trial.note(static_cast<std::uint64_t>(usual_time) + random() % 200 + (call > 3000 ? 3000 : 0));
      }
      ASSERT_EQ(ranks[0].complete(), ranks[1].complete()) << call;
      if (!timed || !ranks[0].complete()) continue;
      ASSERT_EQ(ranks[0].samples().size(), ranks[1].samples().size());
      for (std::size_t i = 0; i < ranks[0].samples().size(); ++i)
        ranks[0].samples()[i] = ranks[1].samples()[i] = std::max(ranks[0].samples()[i], ranks[1].samples()[i]);
      for (Trial& trial : ranks) trial.conclude();
    }
    EXPECT_EQ(ranks[0].trials(), ranks[1].trials());
  }
}

TEST(Trial, TheFirstCallsOfACandidateDoNotCount) {
  std::array<int, Trial::most_candidates> calls{};
  Trial trial = usual_trial(3);
  calls_until_settled(trial, [&](int candidate) {
    const bool first = calls[static_cast<std::size_t>(candidate)]++ == 0;
    return (first ? 2u : 1u) * (candidate == 2 ? 500u : 600u);
  });
  EXPECT_EQ(trial.taken(), 2);
  EXPECT_EQ(trial.taken_nanoseconds(), 500u);
}

// A program that makes long and short calls of one class in turn: a second of the former is no slower.
TEST(Trial, IsFairToProgramsThatAlternateBetweenSizes) {
  for (const double fixed : {0.0, 1000.0}) {
    for (int period = 2; period <= 4; ++period) {
      Trial trial = usual_trial(3, {.bytes = 1000, .fixed_bytes = fixed});
      for (int call = 0; call < 5000; ++call) {
        const std::size_t bytes = call % period == 0 ? 1900 : 1000;
        const Times times = [&](int candidate) {
          return static_cast<std::uint64_t>((fixed + static_cast<double>(bytes)) * (candidate == 2 ? 80 : 100));
        };
        make_call(trial, times, bytes);
      }
      EXPECT_EQ(trial.taken(), 2) << "period " << period;
    }
  }
}

TEST(Trial, OpensAgainWhenTheSettledCandidateHasBecomeSlower) {
  Trial trial = usual_trial(2);
  calls_until_settled(trial, constant({1000, 500}));
  make_calls(trial, constant({1000, 590}), 100'000);
  EXPECT_EQ(trial.trials(), 1) << "18 % are not enough";
  make_calls(trial, constant({1000, 1300}), 40'000);
  EXPECT_EQ(trial.trials(), 2);
  EXPECT_EQ(trial.taken(), Trial::host);
  EXPECT_FALSE(trial.open());
}

TEST(Trial, OneSlowLookIsNotEnough) {
  Trial trial = usual_trial(2);
  calls_until_settled(trial, constant({1000, 500}));
  int slow = 5;
  make_calls(
      trial, [&](int) { return slow > 0 && trial.due() ? --slow, 900 : 500; }, 100'000);
  EXPECT_EQ(trial.trials(), 1);
}

TEST(Trial, LooksLessAndLessOften) {
  Trial trial = usual_trial(2);
  calls_until_settled(trial, constant({1000, 500}));
  int timed = 0;
  for (int call = 0; call < 1'000'000; ++call) {
    timed += trial.due() ? 1 : 0;
    make_call(trial, constant({1000, 500}));
  }
  EXPECT_LT(timed, 400);
  EXPECT_GT(timed, 200);
}

TEST(Trial, BeginsAfterItsCallsBefore) {
  Trial trial = usual_trial(2, {.calls_before = 10});
  for (int call = 0; call < 10; ++call) {
    EXPECT_FALSE(trial.due());
    make_call(trial, constant({100, 100}));
  }
  EXPECT_EQ(trial.taken(), 1) << "the best predicted plan";
  EXPECT_TRUE(trial.due());
  EXPECT_TRUE(trial.open());
  calls_until_settled(trial, constant({100, 50}));
  EXPECT_EQ(trial.taken(), 1);
}

TEST(Trial, WhatIsKnownIsNotTriedButWatched) {
  Trial trial(usual(3), {}, {.candidate = 2, .taken_nanoseconds = 500, .host_nanoseconds = 0});
  EXPECT_FALSE(trial.open());
  EXPECT_EQ(trial.taken(), 2);
  EXPECT_EQ(trial.saved_nanoseconds(), 0u);
  make_calls(trial, constant({400, 900, 800}), 4000);
  EXPECT_EQ(trial.trials(), 1);
  EXPECT_EQ(trial.taken(), Trial::host);
}

// It was seen to be faster: what is usual is not expected any more.
TEST(Trial, AHostThatIsKnownToWinIsExpectedTo) {
  Trial trial(usual(2), {}, {.candidate = Trial::host, .taken_nanoseconds = 500, .host_nanoseconds = 500});
  int plans = 0;
  make_calls(
      trial, [&](int candidate) { return plans += candidate != Trial::host ? 1 : 0, candidate == 0 ? 500 : 600; },
      2000);
  EXPECT_EQ(plans, 0);
  make_calls(
      trial, [&](int candidate) { return plans += candidate != Trial::host ? 1 : 0, candidate == 0 ? 1500 : 1600; },
      3000);
  EXPECT_EQ(trial.trials(), 1);
  EXPECT_LE(plans, 8) << "a plan that loses is not expected to be faster";
  EXPECT_EQ(trial.taken(), Trial::host);
}

// Times are kept at the class's shortest size; what is saved is of the sizes that were called.
TEST(Trial, CountsWhatIsSavedAtTheSizeOfItsCalls) {
  Trial trial = usual_trial(2, {.bytes = 1000});
  const auto call = [&] { make_call(trial, constant({2000, 800}), 2000); };
  while (trial.open()) call();
  EXPECT_EQ(trial.taken_nanoseconds(), 400u);
  EXPECT_EQ(trial.host_nanoseconds(), 1000u);
  const std::uint64_t before = trial.saved_nanoseconds();
  for (int i = 0; i < 100; ++i) call();
  EXPECT_EQ(trial.saved_nanoseconds() - before, 100u * 1200);
}

TEST(Trial, WhatIsKnownSavesFromTheFirstCall) {
  Trial trial(usual(2), {}, {.candidate = 1, .taken_nanoseconds = 400, .host_nanoseconds = 1000});
  make_calls(trial, constant({1000, 400}), 100);
  EXPECT_EQ(trial.saved_nanoseconds(), 100u * 600);
}

TEST(Trial, CountsWhatItsCallsSaved) {
  Trial trial = usual_trial(2, {.burst = 2});
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

TEST(Trial, ASampleMayBeOfSeveralCallsInARowWhoseFirstDoesNotCount) {
  Trial trial({{0.9, 0.5}, {1, 0.2}}, {.burst = 4});
  int call = 0, last = -1;
  while (trial.open() && call < 10'000) {
    const bool timed = trial.due(), begins = trial.begins_sample();
    const int candidate = trial.candidate();
    if (timed) {
      EXPECT_TRUE(begins || candidate == last) << call;
      last = candidate;
    }
    make_call(trial, [&](int which) { return (which == 1 ? 800u : 1000u) + (timed && begins ? 400 : 0); });
    ++call;
  }
  EXPECT_EQ(trial.taken(), 1);
  EXPECT_EQ(trial.taken_nanoseconds(), 800u);
}

class NoisyTrials : public testing::TestWithParam<unsigned> {};

// Times vary by a tenth, and one call of twenty waits for a core.
TEST_P(NoisyTrials, SettleOnTheFastestAndStayThere) {
  std::mt19937_64 random(GetParam());
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  const std::array<double, 3> usual_times = {1300, 1500, 1000};
  const Times noisy = [&](int candidate) {
    std::uniform_real_distribution<double> spread(0.95, 1.05), part(0, 1);
    const double late = part(random) < 0.05 ? 20'000 : 0;
    return static_cast<std::uint64_t>(usual_times[static_cast<std::size_t>(candidate)] * spread(random) + late);
  };
  Trial trial = usual_trial(3);
  calls_until_settled(trial, noisy);
  EXPECT_EQ(trial.taken(), 2);
  make_calls(trial, noisy, 200'000);
  EXPECT_EQ(trial.trials(), 1);
  EXPECT_EQ(trial.taken(), 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, NoisyTrials, testing::Range(1u, 41u));

// Systems as the prospects have them, but the host with its first call three times as long: what loops of calls take,
// as a ratio to the best single candidate's.
class TrialLoops : public testing::TestWithParam<int> {
 protected:
  static constexpr int systems = 400;

  struct Loops {
    double mean = 0, worst = 0;
    double samples = 0;  // the most that samples of other candidates took more, as a part of the loop
  };
  static Loops of(int calls, const TrialTerms& terms) {
    Loops loops;
    for (unsigned seed = 1; seed <= systems; ++seed) {
      std::mt19937_64 random(seed);
      std::normal_distribution<double> octaves(0, 1);
      std::array<double, Trial::most_candidates> times{};
      const std::vector<Prospect> prospects = usual(Trial::most_candidates);
      for (std::size_t i = 0; i < times.size(); ++i)
        times[i] = 1e6 * prospects[i].ratio * std::exp2(0.8 * prospects[i].spread * octaves(random));
      Trial trial(prospects, terms);
      int hosts = 0;
      double sampled = 0, sum = 0, largest = 0;
      for (int call = 0; call < calls; ++call) {
        const double noise = std::exp2(0.03 * octaves(random));
        const bool first = trial.due() && trial.candidate() == Trial::host && hosts++ == 0;
        const double current = times[static_cast<std::size_t>(trial.taken())];
        const double took = static_cast<double>(make_call(trial, [&](int candidate) {
          return static_cast<std::uint64_t>(times[static_cast<std::size_t>(candidate)] * noise * (first ? 3 : 1));
        }));
        sum += took;
        const double more = std::max(0.0, took - 1.1 * current);
        sampled += more;
        largest = std::max(largest, more);
      }
      const double ratio = sum / (calls * *std::ranges::min_element(times));
      loops.mean += ratio / systems;
      loops.worst = std::max(loops.worst, ratio);
      loops.samples = std::max(loops.samples, (sampled - largest) / sum);
    }
    return loops;
  }
};

// All but the largest surprise keeps to its part; a surprise is paid back before the next sample is taken.
TEST_P(TrialLoops, SamplesKeepToTheirPartOfTheTime) {
  const Loops loops = of(GetParam(), {.calls_before = 2});
  EXPECT_LE(loops.samples, TrialTerms::usual_part) << "mean " << loops.mean << ", worst " << loops.worst;
}

INSTANTIATE_TEST_SUITE_P(Calls, TrialLoops, testing::Values(5, 12, 50, 200, 1000, 20'000));

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
