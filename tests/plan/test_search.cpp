// The search finds what listing and pricing every program finds, and the level model agrees with a simulation of the
// messages.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plan/choose/candidate.h"
#include "plan/synthesis/enumeration.h"
#include "plan/synthesis/search.h"
#include "simulation.h"

namespace plait::plan {
namespace {

double random_between(std::mt19937& random, double low, double high) {
  return low * std::pow(high / low, std::uniform_real_distribution<>()(random));
}

GroupModel random_model(const std::vector<int>& cardinalities, std::mt19937& random) {
  GroupModel model;
  double inner = 1;
  for (const int cardinality : cardinalities) inner *= cardinality;
  for (const int cardinality : cardinalities) {
    inner /= cardinality;
    ModelLevel level;
    level.cardinality = cardinality;
    level.behind = inner * static_cast<double>(1 + random() % 3);
    level.link = {.name = "",
                  .latency = random_between(random, 1e-7, 1e-4),
                  .overhead = random_between(random, 1e-8, 1e-5),
                  .cpu_seconds_per_byte = random_between(random, 1e-11, 1e-9),
                  .port_seconds_per_byte = random() % 3 == 0 ? 0 : random_between(random, 1e-11, 1e-8),
                  .port_seconds_per_message = random() % 2 == 0 ? 0 : 1e-6,
                  .half_duplex = random() % 2 == 0,
                  .network = random() % 2 == 0};
    model.levels.push_back(level);
    model.members *= cardinality;
  }
  model.reduce_seconds_per_byte = 1e-11;
  model.ranks_per_core = random() % 2 == 0 ? 1 : 4;
  return model;
}

constexpr int largest_listing = 4000;

void expect_cheapest(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options) {
  const ProgramList list = list_programs(task, 2 * task.levels, largest_listing);
  double best = 1e9;
  std::string name;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto priced = price_program(task, model, options, [&] {
      Program program = list.program(i);
      for (Instruction& instruction : program.instructions) instruction.algorithm_given = false;
      return program;
    }());
    if (!priced.ok() || priced->seconds >= best) continue;  // without an algorithm that fits
    best = priced->seconds;
    name = text(priced->program);
  }
  const auto found = cheapest_programs(task, model, options, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_LE(found.front().seconds, best * (1 + options.tolerance + 1e-9))
      << text(found.front().program) << " not " << name;
  const auto again = price_program(task, model, options, found.front().program);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NEAR(again->seconds / found.front().seconds, 1, 1e-9) << text(found.front().program);
}

TEST(Search, FindsTheCheapestOfAllPrograms) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::vector<int>> shapes = {{2}, {5}, {4, 2}, {2, 8}, {3, 3}, {2, 2, 2}, {3, 2, 4}};
  for (int round = 0; round < 6; ++round)
    for (const auto& shape : shapes) {
      const GroupModel model = random_model(shape, random);
      const SearchOptions options{
          .bytes = random_between(random, 1, 1e9), .most_chunks = 1 << random() % 7, .tolerance = 0};
      expect_cheapest(reduction_task(static_cast<int>(shape.size())), model, options);
      if (shape.size() > 2) continue;
      for (const Collective collective : {Collective::reduce, Collective::bcast, Collective::allgather,
                                          Collective::gather, Collective::scatter, Collective::reduce_scatter_block})
        expect_cheapest(task_of(collective, static_cast<int>(shape.size()), 0, false), model, options);
    }
}

TEST(Search, TheDefaultToleranceIsKeptWithoutPipelines) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const GroupModel model = random_model({3, 2, 4}, random);
    const SearchOptions options{.bytes = random_between(random, 1, 1e9), .most_chunks = 1};
    expect_cheapest(reduction_task(3), model, options);
  }
}

// The effort for pipelines is bounded, so that on odd machines the best may be missed.
TEST(Search, PipelinesAreNearlyAlwaysNearlyTheBest) {
  std::mt19937 random(11);
  int near = 0;
  for (int round = 0; round < 50; ++round) {
    const GroupModel model = random_model({4, 2, 3}, random);
    SearchOptions options{.bytes = random_between(random, 1e6, 1e9)};
    const double quick = cheapest_programs(reduction_task(3), model, options, 1).front().seconds;
    options.tolerance = 0;
    const double best = cheapest_programs(reduction_task(3), model, options, 1).front().seconds;
    EXPECT_LE(quick, 1.3 * best) << round;
    near += quick <= 1.02 * best ? 1 : 0;
  }
  EXPECT_GE(near, 45);
}

TEST(Search, ResultsAscendAndDiffer) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const GroupModel model = random_model({4, 3, 2}, random);
    const auto found = cheapest_programs(reduction_task(3), model, {.bytes = random_between(random, 1, 1e8)}, 10);
    ASSERT_EQ(found.size(), 10u);
    for (std::size_t i = 1; i < found.size(); ++i) {
      EXPECT_LE(found[i - 1].seconds, found[i].seconds);
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(found[i].program == found[j].program) << text(found[i].program);
    }
  }
}

TEST(Search, AnOrderedOperatorNeverScatters) {
  std::mt19937 random(5);
  const SynthesisTask task = task_of(Collective::allreduce, 2, 0, true);
  for (const PricedProgram& priced : cheapest_programs(task, random_model({4, 3}, random), {.bytes = 1e6}, 20))
    for (const Instruction& instruction : priced.program.instructions) {
      EXPECT_NE(instruction.what, Instruct::reduce_scatter);
      EXPECT_TRUE(instruction.what != Instruct::all_reduce || instruction.algorithm == &algorithms::recursive_doubling);
    }
}

TEST(Search, AskedForAlgorithmsOnly) {
  std::mt19937 random(6);
  const std::array ring = {&algorithms::ring};
  for (const PricedProgram& priced :
       cheapest_programs(reduction_task(2), random_model({4, 3}, random), {.bytes = 1e6, .algorithms = ring}, 5))
    for (const Instruction& instruction : priced.program.instructions)
      EXPECT_EQ(instruction.algorithm, &algorithms::ring);
}

// The schedules that a program is lowered to, message by message, against the model by level.
TEST(LevelModel, AgreesWithTheSimulationOfItsSchedules) {
  const Machine machine = default_machine();
  int compared = 0, near = 0;
  for (const auto& shape : std::vector<std::vector<int>>{{4, 2}, {2, 4}, {4, 4}, {8, 2}, {3, 3}}) {
    const Hierarchy hierarchy = Hierarchy::uniform_of(shape);
    for (const Collective collective : {Collective::allreduce, Collective::bcast, Collective::reduce,
                                        Collective::allgather, Collective::reduce_scatter_block})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{8} << 10, std::size_t{1} << 20}) {
        const Call call{.collective = collective, .count = bytes};
        for (const Candidate& candidate : candidates(call, {.hierarchy = hierarchy, .machine = machine}, 3)) {
          const auto lowered = lower(candidate, collective, 0, true, hierarchy);
          ASSERT_TRUE(lowered.ok());
          const double simulated =
              predict_seconds({lowered->schedules, &lowered->semantics, &hierarchy}, call, machine);
          const double ratio = candidate.seconds / simulated;
          ++compared;
          near += ratio > 0.75 && ratio < 1.33 ? 1 : 0;
          EXPECT_GT(ratio, 0.4) << name(collective) << " " << candidate.name << " on " << hierarchy.describe();
          EXPECT_LT(ratio, 2.5) << name(collective) << " " << candidate.name << " on " << hierarchy.describe();
        }
      }
  }
  EXPECT_GE(near, compared * 9 / 10) << near << " of " << compared;
}

ModelLevel network_of(int cardinality, double behind, double seconds_per_byte, bool shared) {
  ModelLevel level{.cardinality = cardinality, .link = {}, .behind = behind};
  level.link.network = true;
  level.link.port_seconds_per_byte = seconds_per_byte;
  level.link.port_shared = shared;
  return level;
}

// Of 4 rows of 16 nodes, whose rows have the links of all their nodes.
GroupModel rows_of_nodes(bool shared) {
  constexpr double card = 1e-10;
  GroupModel model;
  model.levels = {network_of(4, 16, card / 64, shared), network_of(16, 1, card, shared)};
  model.members = 64;
  return model;
}

// In seconds of a node's card for all data.
double filled(Instruct what, int level, const Algorithm& algorithm, LevelState before, bool shared) {
  constexpr double bytes = 1e6;
  Instruction instruction;
  instruction.what = what;
  instruction.first = instruction.last = level;
  instruction.algorithm = &algorithm;
  return instruction_cost(rows_of_nodes(shared), bytes, before, instruction).fill.volume / (bytes * 1e-10);
}

// A hop between rows has all their links, but one message has its sender's card. Priced so where messages share a port.
TEST(LevelModel, AHopBetweenGroupsTakesWhatItsSendersCardTakes) {
  const LevelState rooted = LevelState::all(2, LevelStatus::rooted);
  EXPECT_NEAR(filled(Instruct::broadcast, 0, algorithms::chain, rooted, true), 3, 1e-9);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::chain, rooted, true), 15, 1e-9);
}

// Of 16 the root has four children, the first of them three: 4 + 3 + 2 + 1.
TEST(LevelModel, ATreesMessagesShareThePortWhereTheyLeaveTogether) {
  const LevelState rooted = LevelState::all(2, LevelStatus::rooted);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::binomial, rooted, false), 4, 1e-9);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::binomial, rooted, true), 10, 1e-9);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::knomial4, rooted, true), 9, 1e-9);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::flat, rooted, true), 15, 1e-9);
  EXPECT_NEAR(filled(Instruct::broadcast, 1, algorithms::chain, rooted, true), 15, 1e-9);
}

// 15/16 of the data leave the root together, then 7/16 who got half of it, 3/16 and 1/16.
TEST(LevelModel, ABinomialScatterWaitsForItsLongestMessages) {
  const LevelState rooted = LevelState::all(2, LevelStatus::rooted);
  LevelState scattered = rooted;
  scattered.set(1, LevelStatus::scattered);
  EXPECT_NEAR(filled(Instruct::scatter, 1, algorithms::binomial, rooted, false), 15.0 / 16, 1e-9);
  EXPECT_NEAR(filled(Instruct::scatter, 1, algorithms::binomial, rooted, true), 26.0 / 16, 1e-9);
  EXPECT_NEAR(filled(Instruct::gather, 1, algorithms::binomial, scattered, true), 15.0 / 16, 1e-9);
  EXPECT_NEAR(filled(Instruct::scatter, 0, algorithms::binomial, scattered, true), 1.0 / 16, 1e-9);
}

}  // namespace
}  // namespace plait::plan
