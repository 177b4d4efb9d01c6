// Pipelines: the task lists, what is wrong with broken ones, and what an iteration takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "plan/pipeline/check.h"
#include "plan/pipeline/simulation.h"
#include "plan/pipeline/task_list.h"
#include "plan/pipeline/weight_delay.h"
#include "tests/plan/pipeline_ticks.h"

namespace plait::plan {
namespace {

using enum PipelineOrder;

// Of GoogleTest's seed, which every failure names.
std::mt19937 random_numbers() {
  return std::mt19937(static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
}

std::string text(const PipelineTasks& tasks) {
  std::string line;
  for (const PipelineTask& task : tasks) line += (line.empty() ? "" : " ") + text(task);
  return line;
}

PipelineSchedule made(const PipelineRequest& request) {
  const auto schedule = pipeline_schedule(request);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  return schedule.ok() ? *schedule : PipelineSchedule{};
}

int draw(std::mt19937& random, int least, int most) { return std::uniform_int_distribution(least, most)(random); }

PipelineRequest drawn(std::mt19937& random, int most_stages, int most_batches) {
  PipelineRequest request{.stages = draw(random, 1, most_stages), .micro_batches = draw(random, 1, most_batches)};
  if (draw(random, 0, 1) == 1) request.order = eager;
  if (draw(random, 0, 1) == 1)
    for (int stage = 0; stage < request.stages; ++stage)
      request.weight_delays.push_back(draw(random, 0, 1) == 0 ? 0 : draw(random, 0, most_batches + 2));
  return request;
}

PipelineCosts drawn_costs(std::mt19937& random, int stages) {
  const auto time = [&](int least, int most) { return 1e-9 * draw(random, least, most); };
  PipelineCosts costs;
  for (int stage = 0; stage < stages; ++stage) costs.stages.push_back({time(1, 9), time(1, 9), time(1, 9)});
  for (int stage = 0; stage + 1 < stages; ++stage)
    costs.boundaries.push_back({{time(1, 6), time(0, 3)}, {time(1, 6), time(0, 3)}});
  costs.half_duplex = draw(random, 0, 3) == 0;
  costs.overlap = draw(random, 0, 2) > 0;
  return costs;
}

std::string described(const PipelineRequest& request) {
  std::string line = std::to_string(request.stages) + " stages, " + std::to_string(request.micro_batches) +
                     (request.order == eager ? " micro-batches, eager" : " micro-batches, 1f1b");
  for (const int delay : request.weight_delays) line += " " + std::to_string(delay);
  return line + ", seed " + std::to_string(testing::UnitTest::GetInstance()->random_seed());
}

// ---- Lists

TEST(PipelineTasks, OneForwardOneBackward) {
  const PipelineSchedule schedule = made({.stages = 3, .micro_batches = 4});
  EXPECT_EQ(text(schedule.stages[0]), "F0 SA0 F1 SA1 F2 SA2 RG0 B0 F3 SA3 RG1 B1 RG2 B2 RG3 B3");
  EXPECT_EQ(text(schedule.stages[1]),
            "RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RA2 F2 SA2 RG1 B1 SG1 RA3 F3 SA3 RG2 B2 SG2 RG3 B3 SG3");
  EXPECT_EQ(text(schedule.stages[2]), "RA0 F0 B0 SG0 RA1 F1 B1 SG1 RA2 F2 B2 SG2 RA3 F3 B3 SG3");
}

TEST(PipelineTasks, EagerWarmsUpTwiceAsFar) {
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(warm_up(one_forward_one_backward, 4, stage), 4 - stage);
    EXPECT_EQ(warm_up(eager, 4, stage), 2 * (4 - stage - 1) + 1);
  }
  const PipelineSchedule schedule = made({.stages = 3, .micro_batches = 4, .order = eager});
  EXPECT_EQ(text(schedule.stages[1]),
            "RA0 F0 SA0 RA1 F1 SA1 RA2 F2 SA2 RG0 B0 SG0 RA3 F3 SA3 RG1 B1 SG1 RG2 B2 SG2 RG3 B3 SG3");
}

TEST(PipelineTasks, WeightsAreLate) {
  const PipelineSchedule schedule = made({.stages = 2, .micro_batches = 3, .weight_delays = {0, 2}});
  EXPECT_TRUE(schedule.weights_apart);
  EXPECT_EQ(text(schedule.stages[0]), "F0 SA0 F1 SA1 RG0 B0 W0 F2 SA2 RG1 B1 W1 RG2 B2 W2");
  EXPECT_EQ(text(schedule.stages[1]), "RA0 F0 B0 SG0 RA1 F1 B1 SG1 RA2 F2 B2 SG2 W0 W1 W2");
}

TEST(PipelineTasks, EveryListIsRightAndHoldsWhatItsBoundSays) {
  for (int stages = 1; stages <= 9; ++stages)
    for (int batches = 1; batches <= 20; ++batches)
      for (const PipelineOrder order : {one_forward_one_backward, eager})
        for (int delay = -1; delay <= 4; ++delay) {
          PipelineRequest request{.stages = stages, .micro_batches = batches, .order = order};
          for (int stage = 0; delay >= 0 && stage < stages; ++stage) request.weight_delays.push_back(delay * stage / 2);
          const PipelineSchedule schedule = made(request);
          const Status status = check_pipeline(schedule, activation_bounds(request));
          ASSERT_TRUE(status.ok()) << described(request) << ": " << status.message();
          ASSERT_EQ(peak_activations(schedule), activation_bounds(request)) << described(request);
        }
}

TEST(PipelineTasks, RandomDelaysAreRight) {
  std::mt19937 random = random_numbers();
  for (int round = 0; round < 500; ++round) {
    const PipelineRequest request = drawn(random, 12, 30);
    const Status status = check_pipeline(made(request), activation_bounds(request));
    ASSERT_TRUE(status.ok()) << described(request) << ": " << status.message();
  }
}

TEST(PipelineTasks, BadRequests) {
  const auto refused = [](const PipelineRequest& request, const std::string& words) {
    const auto schedule = pipeline_schedule(request);
    ASSERT_FALSE(schedule.ok());
    EXPECT_EQ(schedule.status().code(), Code::invalid);
    EXPECT_NE(schedule.status().message().find(words), std::string::npos) << schedule.status().message();
  };
  refused({.stages = 0, .micro_batches = 1}, "stages: expected 1 to 1024");
  refused({.stages = 1025, .micro_batches = 1}, "stages");
  refused({.stages = 1, .micro_batches = 0}, "micro-batches: expected 1 to");
  refused({.stages = 1, .micro_batches = 2147483647}, "micro-batches");
  refused({.stages = 1024, .micro_batches = 16384}, "stages times micro-batches");
  refused({.stages = 2, .micro_batches = 2, .weight_delays = {1}}, "one a stage");
  refused({.stages = 2, .micro_batches = 2, .weight_delays = {1, -1}}, "0 or more");
}

// ---- What is wrong with broken lists

PipelineTasks::iterator find(PipelineTasks& tasks, PipelineTaskKind kind, int batch) {
  return std::find(tasks.begin(), tasks.end(), PipelineTask{kind, batch});
}

TEST(PipelineCheck, NamesStageAndTask) {
  const PipelineSchedule good = made({.stages = 3, .micro_batches = 4, .weight_delays = {0, 0, 0}});
  const auto says = [&](const std::string& words, auto&& breaking, const std::vector<int>& bounds = {}) {
    PipelineSchedule schedule = good;
    breaking(schedule);
    const Status status = check_pipeline(schedule, bounds);
    EXPECT_FALSE(status.ok()) << words;
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  using enum PipelineTaskKind;
  says("stage 1: F2 is missing", [](auto& s) { s.stages[1].erase(find(s.stages[1], forward, 2)); });
  says("stage 1: SA2 is missing", [](auto& s) { s.stages[1].erase(find(s.stages[1], send_activation, 2)); });
  says("stage 2: W3 is missing", [](auto& s) { s.stages[2].erase(find(s.stages[2], weight, 3)); });
  says("stage 0: B1 twice", [](auto& s) { s.stages[0].push_back({backward, 1}); });
  says("stage 0: SG0 has no place", [](auto& s) { s.stages[0].push_back({send_gradient, 0}); });
  says("stage 0: W0 has no place", [](auto& s) { s.weights_apart = false; });
  says("stage 2: F4 is of no micro-batch", [](auto& s) { s.stages[2].push_back({forward, 4}); });
  says("stage 2: B0 stands before F0",
       [](auto& s) { std::iter_swap(find(s.stages[2], weight, 0), find(s.stages[2], forward, 0)); });
}

TEST(PipelineCheck, OrdersWaitsAndBounds) {
  using enum PipelineTaskKind;
  PipelineSchedule schedule = made({.stages = 2, .micro_batches = 3});
  std::iter_swap(find(schedule.stages[1], backward, 0), find(schedule.stages[1], send_gradient, 0));
  EXPECT_NE(check_pipeline(schedule).message().find("stage 1: SG0 stands before B0"), std::string::npos);

  schedule = made({.stages = 2, .micro_batches = 3});
  std::iter_swap(find(schedule.stages[1], receive_activation, 0), find(schedule.stages[1], receive_activation, 1));
  EXPECT_FALSE(check_pipeline(schedule).ok());

  // The first stage wants a gradient before it has sent the activations that it is made of.
  schedule = made({.stages = 2, .micro_batches = 1});
  std::iter_swap(find(schedule.stages[0], send_activation, 0), find(schedule.stages[0], receive_gradient, 0));
  EXPECT_EQ(check_pipeline(schedule).message(), "stage 0: waits for ever at RG0");

  schedule = made({.stages = 2, .micro_batches = 3});
  EXPECT_TRUE(check_pipeline(schedule, {2, 1}).ok());
  EXPECT_NE(check_pipeline(schedule, {1, 1}).message().find("stage 0: holds the activations of 2 micro-batches"),
            std::string::npos);
  EXPECT_FALSE(check_pipeline(schedule, {2}).ok());
  EXPECT_FALSE(check_pipeline({}).ok());
}

// Two tasks change places: either the check says so, or the reference can run it to its end.
TEST(PipelineCheck, AgreesWithTheReferenceOnWhatRuns) {
  std::mt19937 random = random_numbers();
  int refused = 0, waiting = 0, accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    const PipelineRequest request = drawn(random, 4, 5);
    PipelineSchedule schedule = made(request);
    PipelineTasks& tasks = schedule.stages[static_cast<std::size_t>(draw(random, 0, request.stages - 1))];
    const auto any = [&] { return static_cast<std::size_t>(draw(random, 0, static_cast<int>(tasks.size()) - 1)); };
    std::swap(tasks[any()], tasks[any()]);
    PipelineCosts costs = drawn_costs(random, request.stages);
    costs.overlap = true;
    const Status status = check_pipeline(schedule);
    if (status.ok()) {
      ++accepted;
      ASSERT_TRUE(PipelineTicks(schedule, costs).run().has_value()) << described(request);
    } else if (status.message().find("for ever") != std::string::npos) {
      ++waiting;
      ASSERT_FALSE(PipelineTicks(schedule, costs).run().has_value()) << described(request);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(waiting, 0);
  EXPECT_GT(accepted, 0);
}

// ---- Times, worked by hand

PipelineCosts costs_of(int stages, double transfer, bool overlap = true) {
  PipelineCosts costs = even_costs(stages, {1, 1, 1}, {{transfer, 0}, {transfer, 0}});
  costs.overlap = overlap;
  return costs;
}

double seconds(const PipelineRequest& request, const PipelineCosts& costs) {
  const auto run = simulate_pipeline(made(request), costs);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? run->seconds : 0;
}

TEST(PipelineSimulation, OneStageOnlyComputes) {
  const auto run = simulate_pipeline(made({.stages = 1, .micro_batches = 5}), costs_of(1, 0));
  ASSERT_TRUE(run.ok());
  EXPECT_DOUBLE_EQ(run->seconds, 15);
  EXPECT_DOUBLE_EQ(run->idle, 0);
  EXPECT_EQ(run->stages[0].peak_activations, 1);
  EXPECT_EQ(run->stages[0].peak_inputs, 0);
}

TEST(PipelineSimulation, WithoutTransfersBothOrdersTakeTheSame) {
  for (int stages = 2; stages <= 6; ++stages)
    for (int batches = stages; batches <= 12; ++batches)
      for (const PipelineOrder order : {one_forward_one_backward, eager}) {
        const auto run =
            simulate_pipeline(made({.stages = stages, .micro_batches = batches, .order = order}), costs_of(stages, 0));
        ASSERT_TRUE(run.ok());
        EXPECT_NEAR(run->seconds, 3.0 * (stages - 1 + batches), 1e-6);
        EXPECT_NEAR(run->idle, (stages - 1.0) / (stages - 1 + batches), 1e-9);
      }
}

// Stage 0: F0 0-1, F1 1-2, B0 6-8, B1 9-11; stage 1: F0 2-3, B0 3-5, F1 5-6, B1 6-8.
TEST(PipelineSimulation, TwoStagesTwoMicroBatches) {
  const PipelineRequest request{.stages = 2, .micro_batches = 2};
  EXPECT_DOUBLE_EQ(seconds(request, costs_of(2, 1)), 11);
  const auto run = simulate_pipeline(made(request), costs_of(2, 1));
  ASSERT_TRUE(run.ok());
  EXPECT_DOUBLE_EQ(run->idle, 1 - 12.0 / 22);
  EXPECT_EQ(run->stages[1].peak_inputs, 1);
  const auto task = [&](std::size_t stage, PipelineTaskKind kind, int batch) {
    for (const TimedPipelineTask& one : run->stages[stage].tasks)
      if (one.task == PipelineTask{kind, batch}) return std::pair(one.begin, one.end);
    return std::pair(-1.0, -1.0);
  };
  EXPECT_EQ(task(0, PipelineTaskKind::send_activation, 1), std::pair(2.0, 3.0));
  EXPECT_EQ(task(1, PipelineTaskKind::send_gradient, 1), std::pair(8.0, 9.0));
  EXPECT_EQ(task(0, PipelineTaskKind::backward, 1), std::pair(9.0, 11.0));
}

// Stage 0: F0 0-1, sends -2, F1 2-3, from 5 on sends A1 and receives G0, -6, B0 6-8, B1 10-12. In half duplex A1
// goes first, 5-6, then G0, 6-7.
TEST(PipelineSimulation, WithoutOverlapBothEndsWait) {
  const PipelineRequest request{.stages = 2, .micro_batches = 2};
  PipelineCosts costs = costs_of(2, 1, false);
  EXPECT_DOUBLE_EQ(seconds(request, costs), 12);
  costs.half_duplex = true;
  EXPECT_DOUBLE_EQ(seconds(request, costs), 13);
}

TEST(PipelineSimulation, LatencyLeavesThePortFree) {
  // Three stages, of which the middle one passes things on: what is under way does not keep the next one from leaving.
  PipelineCosts costs = even_costs(2, {1, 1, 0}, {{1, 5}, {1, 0}});
  // F0..F1 at 0-2; A0 1-2, there at 7; A1 2-3, there at 8. F0 7-8, B0 8-9, F1 9-10, B1 10-11, G1 12, B1 12-13.
  EXPECT_DOUBLE_EQ(seconds({.stages = 2, .micro_batches = 2}, costs), 13);
  costs.boundaries[0].activation = {6, 0};  // A1 only leaves at 7, is there at 13: F1 13-14, B1 14-15, G1 16, B1 17
  EXPECT_DOUBLE_EQ(seconds({.stages = 2, .micro_batches = 2}, costs), 17);
}

// docs/pipeline.md: 4 stages, 8 micro-batches, transfers of 30 % of the computing.
TEST(PipelineSimulation, TheCaseOfThePage) {
  const PipelineRequest base{.stages = 4, .micro_batches = 8};
  PipelineRequest early = base;
  early.order = eager;
  EXPECT_NEAR(seconds(base, costs_of(4, 0.45, false)), 41.55, 1e-6);
  EXPECT_NEAR(seconds(base, costs_of(4, 0.45)), 40.2, 1e-6);
  EXPECT_NEAR(seconds(early, costs_of(4, 0.45)), 35.7, 1e-6);
  EXPECT_NEAR(least_pipeline_seconds(costs_of(4, 0.45), 8, false), 35.7, 1e-6);
  const auto delays = least_weight_delays(early, costs_of(4, 0.45));
  ASSERT_TRUE(delays.ok());
  early.weight_delays = *delays;
  EXPECT_NEAR(seconds(early, costs_of(4, 0.45)), 28.35, 0.0284);
  EXPECT_NEAR(least_pipeline_seconds(costs_of(4, 0.45), 8, true), 28.35, 1e-6);
}

// A stage that waits until its tensors are taken cannot run ahead.
TEST(PipelineSimulation, EagerOrderNeedsOverlap) {
  EXPECT_GT(seconds({.stages = 4, .micro_batches = 8, .order = eager}, costs_of(4, 0.45, false)),
            2 * seconds({.stages = 4, .micro_batches = 8}, costs_of(4, 0.45, false)));
  const auto run = simulate_pipeline(made({.stages = 2, .micro_batches = 8, .order = eager, .weight_delays = {0, 0}}),
                                     costs_of(2, 0.45, false));
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.status().code(), Code::invalid);
  EXPECT_EQ(run.status().message(), "stage 0 waits for ever at SA1");
}

TEST(PipelineSimulation, BadCosts) {
  const PipelineSchedule schedule = made({.stages = 2, .micro_batches = 2});
  EXPECT_FALSE(simulate_pipeline(schedule, costs_of(3, 0)).ok());
  PipelineCosts costs = costs_of(2, 0);
  costs.boundaries.clear();
  EXPECT_FALSE(simulate_pipeline(schedule, costs).ok());
  for (const double bad : {-1.0, 1e9, std::nan("")}) {
    costs = costs_of(2, 0);
    costs.stages[1].backward = bad;
    EXPECT_FALSE(simulate_pipeline(schedule, costs).ok());
    costs = costs_of(2, bad);
    EXPECT_FALSE(simulate_pipeline(schedule, costs).ok());
  }
  PipelineSchedule broken = schedule;
  broken.stages[0].pop_back();
  EXPECT_FALSE(simulate_pipeline(broken, costs_of(2, 0)).ok());
}

TEST(PipelineSimulation, TransferCostOfALink) {
  const LinkLevel link{.name = "node",
                       .latency = 1e-5,
                       .overhead = 1e-6,
                       .cpu_seconds_per_byte = 1e-9,
                       .port_seconds_per_byte = 4e-9,
                       .port_seconds_per_message = 1e-7};
  EXPECT_DOUBLE_EQ(transfer_cost(link, 1000).occupied, 4.1e-6);
  EXPECT_DOUBLE_EQ(transfer_cost(link, 1000).latency, 1.2e-5);
}

// ---- Against the reference

TEST(PipelineSimulation, AgreesWithTheReference) {
  std::mt19937 random = random_numbers();
  int endless = 0;
  for (int round = 0; round < 1500; ++round) {
    const PipelineRequest request = drawn(random, 5, 9);
    const PipelineCosts costs = drawn_costs(random, request.stages);
    const PipelineSchedule schedule = made(request);
    const auto run = simulate_pipeline(schedule, costs);
    const std::optional<long> ticks = PipelineTicks(schedule, costs).run();
    ASSERT_EQ(run.ok(), ticks.has_value()) << described(request) << (costs.overlap ? "" : ", no overlap");
    if (!run.ok()) {
      ++endless;
      continue;
    }
    ASSERT_EQ(std::lround(run->seconds * 1e9), *ticks)
        << described(request) << (costs.overlap ? "" : ", no overlap") << (costs.half_duplex ? ", half duplex" : "");
    ASSERT_GE(run->seconds * (1 + 1e-9), least_pipeline_seconds(costs, request.micro_batches, schedule.weights_apart))
        << described(request);
  }
  EXPECT_GT(endless, 0);
  EXPECT_LT(endless, 1000);
}

TEST(PipelineSimulation, LargestPipelineIsQuick) {
  const PipelineRequest request{.stages = 128, .micro_batches = 128, .order = eager};
  const auto run = simulate_pipeline(made(request), costs_of(128, 0.45));
  ASSERT_TRUE(run.ok());
  EXPECT_NEAR(run->seconds, 3 * 128 + 127 * 3.9, 1e-6);
}

// ---- Delays

TEST(WeightDelay, IsNeverSlowerThanNoneAndNothingOfItIsInVain) {
  std::mt19937 random = random_numbers();
  for (int round = 0; round < 40; ++round) {
    PipelineRequest request{.stages = draw(random, 1, 5), .micro_batches = draw(random, 1, 8)};
    if (draw(random, 0, 1) == 1) request.order = eager;
    PipelineCosts costs = drawn_costs(random, request.stages);
    costs.overlap = true;
    const auto delays = least_weight_delays(request, costs);
    ASSERT_TRUE(delays.ok()) << delays.status().message();
    PipelineRequest none = request;
    none.weight_delays.assign(static_cast<std::size_t>(request.stages), 0);
    request.weight_delays = *delays;
    const double chosen = seconds(request, costs);
    EXPECT_LE(chosen, seconds(none, costs) * (1 + delay_tolerance) + 1e-12) << described(request);
    // No single delay can be taken away without losing more than the tolerance.
    for (int& delay : request.weight_delays) {
      if (delay == 0) continue;
      --delay;
      EXPECT_GT(seconds(request, costs), chosen * (1 - delay_tolerance)) << described(request);
      ++delay;
    }
  }
}

TEST(WeightDelay, FindsTheBestOfAllSmallOnes) {
  const PipelineRequest base{.stages = 3, .micro_batches = 5, .order = eager};
  for (const double transfer : {0.0, 0.25, 0.45, 1.0, 2.0}) {
    double best = 1e9;
    PipelineRequest request = base;
    for (int code = 0; code < 6 * 6 * 6; ++code) {
      request.weight_delays = {code / 36, code / 6 % 6, code % 6};
      best = std::min(best, seconds(request, costs_of(3, transfer)));
    }
    request.weight_delays = *least_weight_delays(base, costs_of(3, transfer));
    EXPECT_LE(seconds(request, costs_of(3, transfer)), best * (1 + delay_tolerance) + 1e-9) << transfer;
  }
}

TEST(WeightDelay, RefusesWhatCannotBe) {
  EXPECT_FALSE(least_weight_delays({.stages = 0, .micro_batches = 1}, costs_of(1, 0)).ok());
  EXPECT_FALSE(least_weight_delays({.stages = 3, .micro_batches = 2}, costs_of(2, 0)).ok());
}

}  // namespace
}  // namespace plait::plan
