// Groups and shares by dynamic programming: against the paper's plain loops, against all schedules, within its bound,
// and in time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "plan/overlap/group_search.h"
#include "tests/plan/overlap/overlap_problems.h"

namespace plait::plan {
namespace {

constexpr std::uint64_t seed = 20231;

void expect_cover(const std::vector<OverlapGroup>& groups, std::size_t calls, std::size_t most) {
  std::size_t next = 0;
  for (const OverlapGroup& group : groups) {
    EXPECT_EQ(group.first_call, next);
    EXPECT_GE(group.calls, 1u);
    next += group.calls;
  }
  EXPECT_EQ(next, calls);
  EXPECT_LE(groups.size(), most);
}

TEST(GroupSearch, FindsWhatThePlainLoopsFind) {
  std::mt19937_64 random(seed);
  for (int model = 0; model < 1000; ++model) {
    const std::size_t calls = 1 + random() % 9, shares = 1 + random() % 4;
    const OverlapProblem problem = random_problem(random, calls, shares);
    const GroupSearchOptions options{.groups = 1 + static_cast<int>(random() % 5),
                                     .chunks = 1 + static_cast<int>(random() % 16)};
    const GroupChoice choice = choose_groups(problem.pass, problem.model, options);
    expect_cover(choice.groups, calls, static_cast<std::size_t>(options.groups));
    const double plain = plain_algorithm_1(problem, options);
    ASSERT_NEAR(choice.chunked_seconds, plain, 1e-9 * plain) << "model " << model << " of seed " << seed;
    const double chosen = chunked_time(problem, choice.groups, options.chunks);
    ASSERT_NEAR(chosen, plain, 1e-9 * plain) << "the groups are not those of the time; model " << model;
  }
}

// The bounds are only in use where a first solution is looked for, with more calls than the plain loops can have.
TEST(GroupSearch, BoundsLeaveTheResultAsItIs) {
  std::mt19937_64 random(seed + 1);
  for (int model = 0; model < 6; ++model) {
    const OverlapProblem problem = random_problem(random, 100 + random() % 30, 2);
    const GroupSearchOptions options{.groups = 3, .chunks = 12};
    const GroupChoice choice = choose_groups(problem.pass, problem.model, options);
    const double plain = plain_algorithm_1(problem, options);
    ASSERT_NEAR(choice.chunked_seconds, plain, 1e-9 * plain) << "model " << model;
    ASSERT_NEAR(chunked_time(problem, choice.groups, options.chunks), plain, 1e-9 * plain) << "model " << model;
  }
}

// Theorem 2: within 1 + (L - 1)/Z of the best of all; and the schedule without the chunks' ends is not slower.
TEST(GroupSearch, IsWithinItsBoundOfTheBestOfAllSchedules) {
  std::mt19937_64 random(seed + 2);
  int exact = 0;
  for (int model = 0; model < 300; ++model) {
    const std::size_t calls = 1 + random() % 6, shares = 1 + random() % 3;
    const OverlapProblem problem = random_problem(random, calls, shares);
    const GroupSearchOptions options{.groups = static_cast<int>(calls), .chunks = 150};
    const GroupChoice choice = choose_groups(problem.pass, problem.model, options);
    const double exactly = backward_time(problem.pass, choice.groups, problem.model).seconds;
    const double best = best_of_all_schedules(problem, options.groups);
    ASSERT_GE(exactly, best * (1 - 1e-9)) << "model " << model;
    ASSERT_LE(exactly, choice.chunked_seconds * (1 + 1e-9)) << "model " << model;
    ASSERT_LE(exactly, best * (1 + static_cast<double>(calls - 1) / options.chunks + 1e-9)) << "model " << model;
    exact += exactly <= best * (1 + 1e-9);
  }
  EXPECT_GT(exact, 150) << "of 300 are the best of all";
}

TEST(GroupSearch, SharesAloneAreTheBestForGivenGroups) {
  std::mt19937_64 random(seed + 3);
  for (int model = 0; model < 200; ++model) {
    const std::size_t calls = 1 + random() % 5;
    const OverlapProblem problem = random_problem(random, calls, 1 + random() % 3);
    const int chunks = 1 + static_cast<int>(random() % 30);
    const GroupChoice choice = choose_shares(problem.pass, problem.model, chunks);
    ASSERT_EQ(choice.groups.size(), calls);
    expect_cover(choice.groups, calls, calls);
    double best = 1e300;
    std::vector<OverlapGroup> groups = choice.groups;
    std::size_t ways = 1;
    for (std::size_t i = 0; i < calls; ++i) ways *= problem.model.shares.size();
    for (std::size_t way = 0; way < ways; ++way) {
      std::size_t digits = way;
      for (OverlapGroup& group : groups) {
        group.share = problem.model.shares[digits % problem.model.shares.size()];
        digits /= problem.model.shares.size();
      }
      best = std::min(best, chunked_time(problem, groups, chunks));
    }
    ASSERT_NEAR(choice.chunked_seconds, best, 1e-9 * best) << "model " << model;
  }
}

// Prints what docs/overlap.md says; the limit allows for sanitizers and busy machines.
void expect_soon(std::size_t layers, int models, double limit) {
  std::mt19937_64 random(seed + 4);
  for (int model = 0; model < models; ++model) {
    const OverlapProblem problem = random_problem(random, layers, 6);
    const auto begin = std::chrono::steady_clock::now();
    const GroupChoice choice = choose_groups(problem.pass, problem.model, {.groups = 10, .chunks = 150});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("K 10, Z 150, J 6, L %zu: %.3f s, %zu groups\n", layers, seconds, choice.groups.size());
    EXPECT_LT(seconds, limit);
  }
}

TEST(GroupSearch, TakesFractionsOfASecond) { expect_soon(160, 4, 30); }
// --gtest_also_run_disabled_tests
TEST(GroupSearch, DISABLED_TakesSecondsForThousandsOfLayers) { expect_soon(2000, 8, 10); }

}  // namespace
}  // namespace plait::plan
