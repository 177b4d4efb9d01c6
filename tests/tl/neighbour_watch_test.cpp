// Who shares its processor with others than its own job's ranks finds it out, and finds out when they have gone.
#include "tl/neighbour_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <span>
#include <thread>

#include "tl/trace.h"
#include "tl/wait_strategy.h"

namespace plait::tl {
namespace {

constexpr std::uint64_t ms = 1'000'000;
thread_local std::optional<std::uint64_t> in_line_ns;  // what the kernel would say
thread_local int readings = 0;

std::optional<std::uint64_t> fake_reader() {
  ++readings;
  return in_line_ns;
}

// A thread's life: so many milliseconds of which it stood in line for a part.
class Life {
 public:
  Life() { in_line_ns = 5 * ms, readings = 0; }
  void pass(std::uint64_t milliseconds, double part_in_line) {
    for (std::uint64_t i = 0; i < milliseconds; ++i) {
      now_ns_ += ms;
      in_line_ns = *in_line_ns + static_cast<std::uint64_t>(part_in_line * static_cast<double>(ms));
      watch.look(now_ns_);
    }
  }
  NeighbourWatch watch{fake_reader};

 private:
  std::uint64_t now_ns_ = 1000 * ms;
};

TEST(NeighbourWatch, NoticesANeighbourAndThatItHasGone) {
  Life life;
  life.pass(100, 0);
  EXPECT_FALSE(life.watch.shared());
  life.pass(60, 0.5);
  EXPECT_TRUE(life.watch.shared());
  life.pass(60, 0.05);  // it computes less, but is there
  EXPECT_TRUE(life.watch.shared());
  life.pass(60, 0.001);
  EXPECT_FALSE(life.watch.shared());
}

TEST(NeighbourWatch, WhatDaemonsTakeIsNoNeighbour) {
  Life life;
  life.pass(1000, 0.05);
  EXPECT_FALSE(life.watch.shared());
  EXPECT_LE(readings, 51);
}

TEST(NeighbourWatch, TimeBeforeTheFirstLookDoesNotCount) {
  Life life;
  in_line_ns = 10'000 * ms;
  life.pass(100, 0);
  EXPECT_FALSE(life.watch.shared());
}

TEST(NeighbourWatch, AnotherThreadsTimeIsNotComparedWithOnesOwn) {
  Life life;
  life.pass(100, 0);
  std::thread([&life] {
    in_line_ns = 9000 * ms;
    life.pass(21, 0);
  }).join();
  EXPECT_FALSE(life.watch.shared());
}

TEST(NeighbourWatch, WithoutTheKernelsCountNothingChanges) {
  NeighbourWatch watch([]() -> std::optional<std::uint64_t> { return std::nullopt; });
  for (std::uint64_t now = 0; now < 1000 * ms; now += ms) watch.look(now);
  EXPECT_FALSE(watch.shared());
}

// The fake stands in line for half of the real time until it is told to be alone.
thread_local bool crowded = false;
std::optional<std::uint64_t> half_in_line() {
  thread_local std::uint64_t last = monotonic_ns(), sum = 0;
  const std::uint64_t now = monotonic_ns();
  if (crowded) sum += (now - last) / 2;
  last = now;
  return sum;
}

void wait_for(WaitStrategy& wait_strategy, std::uint64_t ns) {
  std::array<Channel*, 1> channels{};
  const std::uint64_t until = monotonic_ns() + ns;
  while (monotonic_ns() < until) wait_strategy.wait(channels, true);
}

// Waits that are too short for a look at the clock.
void wait_shortly(WaitStrategy& wait_strategy) {
  std::array<Channel*, 1> channels{};
  for (int i = 0; i < 20; ++i) wait_strategy.wait(channels, true);
  wait_strategy.reset();
}

// Where others have the cores a yield takes milliseconds.
template <class Wait>
bool comes_to(const WaitStrategy& wait_strategy, bool yields, Wait wait) {
  const std::uint64_t until = monotonic_ns() + 60'000 * ms;
  while (wait_strategy.yields() != yields && monotonic_ns() < until) wait();
  return wait_strategy.yields() == yields;
}

TEST(WaitStrategy, GivesWayToNeighboursAsLongAsTheyAreThere) {
  WaitPolicy policy;
  policy.time_in_line_ns = half_in_line;
  policy.sleep_after_ns = UINT64_MAX;
  WaitStrategy wait_strategy(policy);
  crowded = false;
  wait_for(wait_strategy, 100 * ms);
  EXPECT_FALSE(wait_strategy.yields());
  crowded = true;
  EXPECT_TRUE(comes_to(wait_strategy, true, [&] { wait_for(wait_strategy, 10 * ms); }));
  for (int i = 0; i < 300; ++i) wait_shortly(wait_strategy);
  EXPECT_TRUE(wait_strategy.yields());
  crowded = false;
  EXPECT_TRUE(comes_to(wait_strategy, false, [&] { wait_shortly(wait_strategy); }));
}

TEST(WaitStrategy, WhoYieldsBecauseOfItsOwnJobAsksNobody) {
  WaitPolicy policy{.yield = true};
  policy.time_in_line_ns = fake_reader;
  policy.sleep_after_ns = UINT64_MAX;
  readings = 0;
  WaitStrategy wait_strategy(policy);
  wait_for(wait_strategy, 60 * ms);
  EXPECT_TRUE(wait_strategy.yields());
  EXPECT_EQ(readings, 0);
}

TEST(NeighbourWatch, TheKernelCountsTimeInLine) {
  const std::optional<std::uint64_t> before = time_in_line_ns();
  if (!before) GTEST_SKIP() << "this kernel does not";
  EXPECT_GE(*time_in_line_ns(), *before);
}

}  // namespace
}  // namespace plait::tl
