// PLAIT_OVERLAP=auto without a job: made-up ranks that compute and reduce on a made-up clock, each with a learner of
// its own, whose questions are answered as the plugin does it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "plan/overlap/recorded_steps.h"
#include "runtime/fusion/overlap_learner.h"
#include "runtime/progress/progress_share.h"

namespace plait::runtime {
namespace {

struct World {
  std::vector<std::size_t> bytes = {4000, 8000, 2000, 64000, 4000, 1000, 1000, 16000};
  double layer_seconds = 2e-3, startup = 3e-3, rate = 20e6;  // of a step's computation and of reductions
  double slowed = 0.5;                         // how much of a core's share computation loses beside communication
  double plan_costs = 0;                       // seconds that a step takes longer with a plan
  double noise = 0;                            // relative
  std::vector<std::size_t> waits_before = {};  // these calls of a step, too
  double waited = 0;                           // seconds that all ranks but one wait for that one at each question
  double stray = 0;                            // how often a rank happens to have nothing under way elsewhere
  std::function<std::size_t(std::size_t step, std::size_t call)> size = {};  // another than `bytes`
};

// One rank. All of them run the same calls, one after the other; a step is over when all of its calls are.
class Rank {
 public:
  Rank(const World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  OverlapLearner learner;

  // Seconds of a step's calls by themselves: what the schedule of the paper's eq. 12 to 15 says of them.
  void run_call(std::size_t step, std::size_t call, std::uint64_t number) {
    const double duty = learner.plan() == nullptr ? learner.duty(number) : 1;
    const double computed = world_.layer_seconds * disturbance() * (duty > 0.1 ? 1 + world_.slowed * duty : 1);
    if (call == 0) clock_ = std::max(clock_, busy_until_) + world_.layer_seconds;
    clock_ += call == 0 ? 0 : computed;
    const std::size_t bytes = size(step, call);
    const double begin = std::max(clock_, busy_until_);
    busy_until_ = begin + (world_.startup + static_cast<double>(bytes) / world_.rate) * disturbance();
    pending_.push_back({.bytes = bytes,
                        .computed = call == 0 ? 0 : computed,
                        .posted = clock_,
                        .begin = begin,
                        .end = busy_until_,
                        .all_done_before = (call == 0 && step > 0) || waits_within(call)});
  }
  double posted() const { return pending_.back().posted; }
  // The step's last one is posted: with a plan all of it costs one start-up.
  void end_step() {
    if (learner.plan() == nullptr) return;
    const double saved = world_.startup * static_cast<double>(world_.bytes.size() - learner.plan()->groups.size());
    busy_until_ = std::max(clock_, busy_until_ - saved) + world_.plan_costs;
  }
  void note() {
    learner.note(pending_.front());
    pending_.erase(pending_.begin());
  }

 private:
  std::size_t size(std::size_t step, std::size_t call) const {
    return world_.size ? world_.size(step, call) : world_.bytes[call];
  }
  bool waits_within(std::size_t call) {
    const bool stray = std::uniform_real_distribution(0.0, 1.0)(random_) < world_.stray;
    return stray || std::ranges::count(world_.waits_before, call) != 0;
  }
  double disturbance() { return 1 + world_.noise * std::uniform_real_distribution(-1.0, 1.0)(random_); }

  const World& world_;
  std::mt19937_64 random_;
  double clock_ = 1, busy_until_ = 0;
  std::vector<RecordedCall> pending_;
};

void ask(std::vector<Rank>& ranks, std::uint64_t number, double waited) {
  for (;;) {
    std::vector<double> largest;
    for (Rank& rank : ranks) {
      const std::vector<double> values = rank.learner.question(number, rank.posted());
      if (largest.empty()) largest = values;
      ASSERT_EQ(values.size(), largest.size());
      for (std::size_t i = 0; i < values.size(); ++i) largest[i] = std::max(largest[i], values[i]);
    }
    if (largest.empty()) return;
    for (Rank& rank : ranks) rank.learner.answer(number, largest, 1e-4 + (&rank == &ranks[1] ? 0 : waited));
  }
}

void run(std::vector<Rank>& ranks, const World& world, std::size_t steps) {
  std::uint64_t number = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t call = 0; call < world.bytes.size(); ++call, ++number) {
      for (Rank& rank : ranks) rank.run_call(step, call, number);
      ask(ranks, number, world.waited);
      for (Rank& rank : ranks) {
        if (call + 1 == world.bytes.size()) rank.end_step();
        rank.note();
      }
      for (Rank& rank : ranks) ASSERT_EQ(rank.learner.plan() == nullptr, ranks[0].learner.plan() == nullptr);
    }
  }
}

std::vector<Rank> ranks_of(const World& world, std::uint64_t seed) {
  std::vector<Rank> ranks;
  for (std::uint64_t i = 0; i < 3; ++i) ranks.emplace_back(world, seed * 10 + i);
  return ranks;
}

std::string text_of(const Rank& rank) {
  return rank.learner.plan() == nullptr ? std::string() : overlap_plan_json(*rank.learner.plan());
}

TEST(OverlapLearner, PlansWithinSixtySteps) {
  const World world{.noise = 0.05};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Rank> ranks = ranks_of(world, seed);
    run(ranks, world, 60);
    ASSERT_NE(ranks[0].learner.plan(), nullptr) << "seed " << seed << ": " << ranks[0].learner.verdict();
    const OverlapPlan& plan = *ranks[0].learner.plan();
    // Eight start-ups of 3 ms don't fit beside 14 ms of computation.
    EXPECT_LT(plan.groups.size(), world.bytes.size()) << "seed " << seed;
    ASSERT_EQ(plan.calls.size(), world.bytes.size());
    for (std::size_t i = 0; i < plan.calls.size(); ++i) EXPECT_EQ(plan.calls[i].bytes, world.bytes[i]);
    for (const Rank& rank : ranks) EXPECT_EQ(text_of(rank), text_of(ranks[0]));
    EXPECT_EQ(ranks[0].learner.next_question(), ~std::uint64_t{0});
  }
}

TEST(OverlapLearner, WaitingForALateRankIsNoCostOfAnAgreement) {
  const World world, late{.waited = 0.02};
  std::vector<Rank> ranks = ranks_of(world, 1), unequal = ranks_of(late, 1);
  run(ranks, world, 60);
  run(unequal, late, 60);
  ASSERT_NE(unequal[0].learner.plan(), nullptr) << unequal[0].learner.verdict();
  EXPECT_EQ(text_of(unequal[0]), text_of(ranks[0]));
}

TEST(OverlapLearner, LeavesAPlanThatIsSlower) {
  const World world{.plan_costs = 0.1};
  std::vector<Rank> ranks = ranks_of(world, 1);
  run(ranks, world, 80);
  EXPECT_EQ(ranks[0].learner.plan(), nullptr);
  EXPECT_NE(ranks[0].learner.verdict().find("not taken"), std::string::npos) << ranks[0].learner.verdict();
}

TEST(OverlapLearner, FindsNoStepsInCallsOfAnySize) {
  std::mt19937_64 random(7);
  std::vector<std::size_t> sizes(20000);
  for (std::size_t& size : sizes) size = 8 * (1 + random() % 50);
  World world;
  world.size = [&](std::size_t step, std::size_t call) { return sizes[(step * 8 + call) % sizes.size()]; };
  std::vector<Rank> ranks = ranks_of(world, 1);
  run(ranks, world, 2200);
  EXPECT_EQ(ranks[0].learner.plan(), nullptr);
  EXPECT_NE(ranks[0].learner.verdict().find("no steps"), std::string::npos) << ranks[0].learner.verdict();
}

TEST(OverlapLearner, FindsStepsThatWaitInBetween) {
  const World world{.waits_before = {3, 6}};
  std::vector<Rank> ranks = ranks_of(world, 1);
  run(ranks, world, 60);
  ASSERT_NE(ranks[0].learner.plan(), nullptr) << ranks[0].learner.verdict();
  EXPECT_EQ(ranks[0].learner.plan()->calls.size(), world.bytes.size());
}

// A rank that tests its requests while it computes.
TEST(OverlapLearner, FindsStepsThatOneRankSeesElsewhere) {
  const World world{.stray = 0.4};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Rank> ranks = ranks_of(world, seed);
    run(ranks, world, 120);
    for (const Rank& rank : ranks) EXPECT_EQ(rank.learner.calls_of_step(), world.bytes.size()) << "seed " << seed;
    EXPECT_TRUE(ranks[0].learner.verdict().starts_with("planned")) << ranks[0].learner.verdict();
  }
}

TEST(OverlapLearner, FindsStepsOfEqualCalls) {
  World world{.stray = 0.1};
  world.bytes.assign(10, 4000);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<Rank> ranks = ranks_of(world, seed);
    run(ranks, world, 120);
    EXPECT_EQ(ranks[0].learner.calls_of_step(), world.bytes.size()) << "seed " << seed;
  }
}

TEST(OverlapLearner, DoesNotTakeEqualPartsForSteps) {
  World world;
  world.bytes.clear();
  for (std::size_t part = 0; part < 12; ++part) {
    world.waits_before.push_back(world.bytes.size());
    for (const std::size_t bytes : {4000u, 8000u, 4000u, 2000u}) world.bytes.push_back(bytes);
  }
  for (const std::size_t bytes : {16000u, 500u}) world.bytes.push_back(bytes);
  std::vector<Rank> ranks = ranks_of(world, 1);
  run(ranks, world, 60);
  ASSERT_EQ(ranks[0].learner.calls_of_step(), world.bytes.size()) << ranks[0].learner.verdict();
  EXPECT_TRUE(ranks[0].learner.verdict().starts_with("planned")) << ranks[0].learner.verdict();
}

TEST(OverlapLearner, LeavesProgramsThatWaitForEachCall) {
  const World world{.waits_before = {0, 1, 2, 3, 4, 5, 6, 7}};
  std::vector<Rank> ranks = ranks_of(world, 1);
  run(ranks, world, 1100);
  EXPECT_NE(ranks[0].learner.verdict().find("no steps"), std::string::npos) << ranks[0].learner.verdict();
}

TEST(OverlapLearner, BeginsAnewWhereTheStepsChange) {
  for (const std::size_t change : {12u, 20u, 29u}) {
    World world;
    world.size = [&](std::size_t step, std::size_t call) { return world.bytes[call] * (step < change ? 1 : 2); };
    std::vector<Rank> ranks = ranks_of(world, 1);
    run(ranks, world, 120);
    if (ranks[0].learner.plan() == nullptr) {  // it changed while the plan was looked at
      EXPECT_NE(ranks[0].learner.verdict().find("steps change"), std::string::npos) << change;
    } else {
      EXPECT_EQ(ranks[0].learner.plan()->calls[0].bytes, 2 * world.bytes[0]) << change;
    }
  }
}

TEST(RecordedSteps, FindWhatIsRepeated) {
  std::vector<RecordedCall> calls;
  for (int step = 0; step < 3; ++step)
    for (const std::size_t bytes : {10u, 20u, 10u}) calls.push_back({.bytes = bytes, .all_done_before = false});
  EXPECT_EQ(step_pattern(calls), StepPattern());
  for (const std::size_t first : {1u, 4u, 7u}) calls[first].all_done_before = true;
  EXPECT_EQ(step_pattern(calls), (StepPattern{.calls = 3, .first = 1}));
  calls[5].bytes = 30;
  EXPECT_EQ(step_pattern(calls), StepPattern());
  calls[5].bytes = 10;
  calls[6].all_done_before = true;  // another wait, not in all steps
  EXPECT_EQ(step_pattern(calls), (StepPattern{.calls = 3, .first = 1}));
  for (RecordedCall& call : calls) call.all_done_before = true;
  EXPECT_EQ(step_pattern(calls), StepPattern());
}

TEST(RecordedSteps, LookAtHalfOfWhatThereIs) {
  std::vector<RecordedCall> calls(40, {.bytes = 10});
  for (std::size_t i = 0; i < calls.size(); i += 4) calls[i].all_done_before = true;
  calls[15].bytes = 20;
  EXPECT_EQ(step_pattern(calls), (StepPattern{.calls = 4, .first = 0}));
  calls[25].bytes = 20;  // all is alike behind it, but for fewer calls
  EXPECT_EQ(step_pattern(calls), StepPattern());
}

// The ranks have not agreed on what those before the last calls_that_tell saw.
TEST(RecordedSteps, DoNotAskOldCallsWhereAStepBegins) {
  for (const std::size_t length : {4u, 300u, 512u}) {
    std::vector<RecordedCall> calls(8192);
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = {.bytes = i % length, .all_done_before = i % length == 2};
    const StepPattern right{.calls = length, .first = 2};
    EXPECT_EQ(step_pattern(calls), right);
    for (std::size_t i = 0; i < calls.size() - calls_that_tell; ++i) calls[i].all_done_before = i % 3 == 0;
    EXPECT_EQ(step_pattern(calls), right);
    calls[calls.size() - 1 - length].bytes += 8;
    EXPECT_EQ(step_pattern(calls), StepPattern());
  }
}

TEST(RecordedSteps, TellWhatCommunicationTakes) {
  // Two calls a step; the first one's reduction of 1 s start-up and 1 s a byte runs beside 4 s of computation.
  std::vector<RecordedCall> calls;
  for (int step = 0; step < 3; ++step) {
    const double at = step * 100;
    calls.push_back({.bytes = 1, .posted = at, .begin = at, .end = at + 2, .all_done_before = true});
    calls.push_back({.bytes = 4, .computed = 4, .posted = at + 4, .begin = at + 4, .end = at + 9});
  }
  calls.push_back({.bytes = 1, .posted = 300, .begin = 300, .end = 302});
  EXPECT_EQ(step_computation(calls, 2), (std::vector<double>{0, 4}));
  EXPECT_NEAR(startup_of(std::span(calls).first(6), 7), 1, 1e-9);
  EXPECT_NEAR(startup_of(std::span(calls).first(1), 7), 0.9 * 2, 1e-9);  // no longer than the reduction
  const StepFigures figures = step_figures(calls, 2, 1);
  EXPECT_DOUBLE_EQ(figures.step, 100);
  EXPECT_DOUBLE_EQ(figures.computation, 4);
  EXPECT_DOUBLE_EQ(figures.beside, 2);
  EXPECT_DOUBLE_EQ(figures.overlapped_rate, 1);
  EXPECT_DOUBLE_EQ(figures.alone_rate, 1);
  // Of the 2 s beside communication one was lost.
  EXPECT_DOUBLE_EQ(slowdown_of(3, figures), 2);
  EXPECT_DOUBLE_EQ(slowdown_of(5, figures), 1);
}

}  // namespace
}  // namespace plait::runtime
