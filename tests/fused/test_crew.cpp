// Each worker works once a round, and all that they wrote is the caller's afterwards.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "fused/workers/crew.h"

namespace plait::fused {
namespace {

TEST(Crew, EachWorkerWorksOnceARound) {
  for (const int workers : {1, 2, 5}) {
    std::vector<int> times(static_cast<std::size_t>(workers));
    const auto work = [&](int worker) noexcept { ++times[static_cast<std::size_t>(worker)]; };
    Crew crew(workers);
    EXPECT_EQ(crew.workers(), workers);
    for (int round = 1; round <= 1000; ++round) {
      crew.begin(work);
      crew.join();
      EXPECT_EQ(times, std::vector<int>(times.size(), round));
    }
  }
}

TEST(Crew, WorksBesideTheCallerFromItsBeginOn) {
  std::atomic<int> there{0};
  const auto work = [&](int) noexcept { ++there; };
  Crew crew(3);
  crew.begin(work);
  while (there.load() != 2) std::this_thread::yield();
  crew.join();
  EXPECT_EQ(there.load(), 3);
}

TEST(Crew, WakesThoseThatSleep) {
  std::atomic<int> there{0};
  const auto work = [&](int) noexcept { ++there; };
  Crew crew(3);
  for (int round = 1; round <= 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    crew.begin(work);
    crew.join();
    EXPECT_EQ(there.load(), 3 * round);
  }
}

TEST(Crew, MayEndWithoutARound) {
  for (int round = 0; round < 50; ++round) Crew crew(4);
}

}  // namespace
}  // namespace plait::fused
