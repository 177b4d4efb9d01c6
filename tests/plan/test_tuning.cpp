// The tuner's dynamic programmes against brute force, and the ranges that they make.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "plan/choose/call_synthesis.h"
#include "plan/choose/planner.h"
#include "plan/choose/shape_tuner.h"
#include "plan/choose/size_cover.h"
#include "plan/lower/lowering.h"
#include "plan/lower/proof.h"
#include "plan/synthesis/enumeration.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

double random_between(std::mt19937& random, double low, double high) {
  return low * std::pow(high / low, std::uniform_real_distribution<>()(random));
}

LinkLevel random_link(const char* name, bool network, std::mt19937& random) {
  return {.name = name,
          .latency = random_between(random, 1e-7, 1e-4),
          .overhead = random_between(random, 1e-8, 1e-5),
          .cpu_seconds_per_byte = random_between(random, 1e-11, 1e-9),
          .port_seconds_per_byte = !network && random() % 2 == 0 ? 0 : random_between(random, 1e-11, 1e-8),
          .port_seconds_per_message = random() % 2 == 0 ? 0 : 1e-6,
          .half_duplex = random() % 2 == 0,
          .network = network,
          .rails = network ? static_cast<int>(1 + random() % 3) : 1};
}

Machine random_machine(std::mt19937& random) {
  Machine machine;
  machine.name = "random";
  machine.levels = {random_link("node", true, random), random_link("rank", false, random)};
  machine.reduce_seconds_per_byte = random() % 2 == 0 ? 0 : 1e-11;
  machine.start_seconds_per_byte = random() % 3 == 0 ? 1e-10 : 0;
  machine.ranks_per_core = random() % 2 == 0 ? 1 : 4;
  return machine;
}

std::size_t random_size(std::mt19937& random) {
  static const std::vector<std::size_t> sizes = tuned_sizes();
  return sizes[random() % sizes.size()];
}

// The least time of a call over all programs, algorithms (but NCCL's double tree), numbers of chunks and rails: every
// way to the goal is gone, and priced at its end.
class BruteForce {
 public:
  BruteForce(Collective collective, const CandidateContext& context, std::size_t bytes)
      : collective_(collective),
        context_(context),
        synthesis_(
            synthesis_of({.collective = collective, .count = bytes, .element_bytes = bytes > 0 ? 1u : 0u}, context)) {}

  double run() {
    const int rails = context_.hierarchy.nodes() > 1 ? context_.machine.levels.front().rails : 1;
    for (rails_ = 1; rails_ <= rails; ++rails_) {
      model_ = rails_ > 1 ? with_chunks_on_rails(synthesis_.model, rails_) : synthesis_.model;
      PipelineCost start;
      start.fill.fixed = model_.start_seconds_per_byte * synthesis_.options.bytes;
      go_on(synthesis_.task.start, start);
    }
    return least_;
  }

 private:
  void go_on(LevelState state, const PipelineCost& cost) {
    if (synthesis_.task.is_goal(state)) return price(cost);
    for (int first = 0; first < synthesis_.task.levels; ++first)
      for (int last = first; last < synthesis_.task.levels; ++last)
        for (int kind = 0; kind < all_instructs; ++kind)
          if (const auto next = apply(synthesis_.task, state, static_cast<Instruct>(kind), first, last); next)
            for (const Algorithm* algorithm : all_algorithms) {
              const Instruction instruction{static_cast<Instruct>(kind), first, last, algorithm};
              if (algorithm->usual && fits(instruction, synthesis_.grid)) take(instruction, state, *next, cost);
            }
  }

  void take(const Instruction& instruction, LevelState state, LevelState next, PipelineCost cost) {
    const PipelineCost more = instruction_cost(model_, synthesis_.options.bytes, state, instruction);
    cost.fill += more.fill;
    for (std::size_t l = 0; l < cost.load.size(); ++l) cost.load[l] += more.load[l];
    program_.instructions.push_back(instruction);
    go_on(next, cost);
    program_.instructions.pop_back();
  }

  void price(const PipelineCost& cost) {
    for (int chunks = 1; chunks <= synthesis_.options.most_chunks; chunks *= 2) {
      const double time = pipeline_seconds(cost, synthesis_.task.levels, chunks);
      if (time < least_ && chunks >= rails_ && may_have(chunks)) least_ = time;
    }
  }

  bool may_have(int chunks) const {
    const auto segments = segments_needed(program_, synthesis_.grid, collective_, false);
    if (!segments.ok() || chunks > most_chunks_for(*segments, synthesis_.grid.ranks())) return false;
    return rails_ == 1 || synthesis_.options.bytes / *segments / chunks >= 32 << 10;
  }

  Collective collective_;
  const CandidateContext& context_;
  CallSynthesis synthesis_;
  GroupModel model_;
  int rails_ = 1;
  Program program_;
  double least_ = never;
};

double least_at(const std::vector<PlanCurve>& curves, std::size_t point) {
  double least = never;
  for (const PlanCurve& curve : curves) least = std::min(least, curve.seconds[point]);
  return least;
}

TEST(Tuner, FindsWhatBruteForceFinds) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const char* shapes[] = {"2x1", "1x3", "5x1", "2x2", "3x2*2", "2x4", "4x3", "1x2x3", "3,2,1", "2,1"};
  for (const char* text : shapes) {
    const auto shape = parse_shape(text);
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    const Machine machine = random_machine(random);
    const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .siblings = shape->siblings};
    for (int number = 0; number < planned_collectives; ++number) {
      const auto collective = static_cast<Collective>(number);
      if (!is_tuned(collective) || collective == Collective::alltoall) continue;
      const std::size_t size = collective == Collective::barrier ? 0 : random_size(random);
      const auto curves = plan_curves(collective, context, {size}, false);
      const double expected = BruteForce(collective, context, size).run();
      EXPECT_NEAR(least_at(curves, 0) / expected, 1, 1e-9) << name(collective) << " of " << size << " on " << text;
    }
  }
}

// Three levels have too many programs with algorithms: there each program's algorithms are those of price_program.
TEST(Tuner, IsNeverWorseThanAnyProgramOfThreeLevels) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const char* text : {"2x2x2", "3x2x2", "2/2x2"}) {
    const auto shape = parse_shape(text);
    const Machine machine = random_machine(random);
    const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
    const std::size_t size = random_size(random);
    const CallSynthesis synthesis = synthesis_of({.collective = Collective::allreduce, .count = size}, context);
    const ProgramList list = list_programs(synthesis.task, 6, 100000);
    const double found = least_at(plan_curves(Collective::allreduce, context, {size}, false), 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
      Program program = list.program(i);
      for (Instruction& instruction : program.instructions) instruction.algorithm_given = false;
      SearchOptions options = synthesis.options;
      options.most_chunks = 1;
      const auto priced = price_program(synthesis.task, synthesis.model, options, program);
      if (!priced.ok()) continue;
      EXPECT_LE(found, priced->seconds * (1 + 1e-9)) << plait::plan::text(priced->program) << " on " << text;
    }
  }
}

// A size's plans do not depend on which other sizes are looked at.
TEST(Tuner, ManySizesAtOnceGiveWhatEachGivesAlone) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto shape = parse_shape("4x2x2");
  const Machine machine = random_machine(random);
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  const std::vector<std::size_t> sizes = tuned_sizes();
  for (const Collective collective : {Collective::allreduce, Collective::scatter, Collective::allgather}) {
    const auto curves = plan_curves(collective, context, sizes, false);
    for (int round = 0; round < 20; ++round) {
      const std::size_t point = random() % sizes.size();
      const auto alone = plan_curves(collective, context, {sizes[point]}, false);
      EXPECT_NEAR(least_at(curves, point) / least_at(alone, 0), 1, 1e-9) << name(collective) << " " << sizes[point];
    }
  }
}

// ---- ranges

// The fewest ranges, by trying every way to cut.
std::size_t fewest_ranges(const std::vector<std::vector<double>>& times, double tolerance) {
  const std::size_t points = times.front().size();
  const auto near = [&](std::size_t plan, std::size_t point) {
    double least = never;
    for (const auto& other : times) least = std::min(least, other[point]);
    return times[plan][point] <= least * (1 + tolerance);
  };
  std::size_t fewest = points;
  for (std::uint32_t cuts = 0; cuts < 1u << (points - 1); ++cuts) {
    std::vector<std::size_t> first = {0};
    for (std::size_t i = 1; i < points; ++i)
      if ((cuts >> (i - 1) & 1) != 0) first.push_back(i);
    first.push_back(points);
    bool covered = true;
    for (std::size_t r = 0; r + 1 < first.size() && covered; ++r) {
      covered = false;
      for (std::size_t plan = 0; plan < times.size() && !covered; ++plan) {
        covered = true;
        for (std::size_t i = first[r]; i < first[r + 1]; ++i) covered = covered && near(plan, i);
      }
    }
    if (covered) fewest = std::min(fewest, first.size() - 1);
  }
  return fewest;
}

TEST(SizeCover, HasAsFewRangesAsBruteForce) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const std::size_t points = 1 + random() % 10, plans = 1 + random() % 6;
    std::vector<std::vector<double>> times(plans, std::vector<double>(points));
    for (auto& plan : times)
      for (double& time : plan) time = random() % 5 == 0 ? never : 1 + static_cast<double>(random() % 4) / 100;
    for (std::size_t point = 0; point < points; ++point) times[random() % plans][point] = 1;
    const double tolerance = 0.021;
    const auto ranges = cover_sizes(times, tolerance);
    EXPECT_EQ(ranges.size(), fewest_ranges(times, tolerance));
    std::size_t end = 0;
    for (const CoveredRange& range : ranges) {
      EXPECT_EQ(range.first, end);
      for (std::size_t i = range.first; i < range.end; ++i) {
        double least = never;
        for (const auto& plan : times) least = std::min(least, plan[i]);
        EXPECT_LE(times[range.plan][i], least * (1 + tolerance));
      }
      end = range.end;
    }
    EXPECT_EQ(end, points);
  }
}

TEST(SizeCover, OfAsFewRangesTakesTheFastest) {
  const auto ranges = cover_sizes({{1.00, 1.00, 1.02, 1.05}, {1.05, 1.02, 1.00, 1.00}}, 0.02);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].end, 2u);
}

TEST(SizeCover, AMachineWithoutCostsHasOneRange) { EXPECT_EQ(cover_sizes({{0, 0}, {0, 0}}, 0.02).size(), 1u); }

double seconds_of(const std::string& plan, std::size_t size, Collective collective, const CandidateContext& context) {
  CallSynthesis synthesis = synthesis_of({.collective = collective, .count = size}, context);
  const auto rails = std::count(plan.begin(), plan.end(), ',') + (plan.find('@') != plan.npos ? 1 : 0);
  const std::string without = plan.substr(0, plan.find(" @"));
  const auto program = parse_program(without.substr(0, without.rfind(" x")));
  EXPECT_TRUE(program.ok()) << plan;
  synthesis.options.fewest_chunks = synthesis.options.most_chunks = std::stoi(without.substr(without.rfind(" x") + 2));
  const GroupModel model = rails > 1 ? with_chunks_on_rails(synthesis.model, static_cast<int>(rails)) : synthesis.model;
  const auto priced = price_program(synthesis.task, model, synthesis.options, *program);
  return priced.ok() ? priced->seconds : never;
}

TEST(Tuner, RangesAreNearTheBestEverywhere) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto shape = parse_shape("4x2x2");
  const Machine machine = random_machine(random);
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  const std::vector<std::size_t> sizes = tuned_sizes();
  const auto tuned = tune_collective(Collective::allreduce, context);
  ASSERT_TRUE(tuned.ok());
  const auto curves = plan_curves(Collective::allreduce, context, sizes, false);
  EXPECT_EQ(tuned->ranges.front().from, 1u);
  EXPECT_EQ(tuned->ranges.back().to, largest_tuned_bytes + 1);
  for (std::size_t point = 0; point < sizes.size(); ++point)
    for (std::size_t i = 0; i < tuned->ranges.size(); ++i) {
      const TunedRange& range = tuned->ranges[i];
      EXPECT_EQ(range.from, i > 0 ? tuned->ranges[i - 1].to : 1u);
      if (sizes[point] < range.from || sizes[point] >= range.to) continue;
      EXPECT_LE(seconds_of(range.plan, sizes[point], Collective::allreduce, context),
                least_at(curves, point) * (1 + range_tolerance + 1e-6))
          << sizes[point] << " " << range.plan;
    }
}

// ---- what is found can be carried out

TEST(Tuner, ItsPlansAreTakenAndProven) {
  std::mt19937 random(3);
  for (const char* text : {"1x4", "4x2", "2x2x2", "3,2,1", "2/2x2"}) {
    const auto shape = parse_shape(text);
    const Machine machine = random_machine(random);
    const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine, .rails = 3};
    for (int number = 0; number < planned_collectives; ++number) {
      const auto collective = static_cast<Collective>(number);
      if (!is_tuned(collective)) continue;
      const auto tuned = tune_collective(collective, context);
      ASSERT_TRUE(tuned.ok());
      for (const TunedRange& range : tuned->ranges) {
        const Call call{.collective = collective, .count = range.from};
        const auto candidate = named_candidate(range.plan, call, context);
        ASSERT_TRUE(candidate.ok()) << range.plan << ": " << candidate.status().message();
        const auto lowered = lower(*candidate, collective, 0, true, shape->hierarchy);
        ASSERT_TRUE(lowered.ok()) << range.plan << ": " << lowered.status().message();
        EXPECT_TRUE(prove(lowered->semantics, lowered->schedules, true).ok()) << range.plan;
      }
    }
  }
}

TEST(Tuner, TheModelIsThePlanners) {
  const auto shape = parse_shape("4x2");
  const Machine machine = default_machine();
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, std::size_t{1} << 20}) {
    const Call call{.collective = Collective::allreduce, .count = size};
    const double planned = candidates(call, context, 1).front().seconds;
    const double tuned = least_at(plan_curves(Collective::allreduce, context, {size}, false), 0);
    EXPECT_LE(tuned, planned * (1 + 1e-9)) << size;
    EXPECT_GE(tuned, planned * 0.97) << size;
  }
}

TEST(Tuner, FiguresBeyondAllBoundsAreRefused) {
  Machine machine = default_machine();
  machine.levels.front().latency = 1e308;
  machine.levels.front().overhead = 1e308;
  const auto shape = parse_shape("64x2");
  const auto tuned = tune_collective(Collective::allreduce, {.hierarchy = shape->hierarchy, .machine = machine});
  ASSERT_FALSE(tuned.ok());
  EXPECT_EQ(tuned.status().code(), Code::invalid);
}

}  // namespace
}  // namespace plait::plan
