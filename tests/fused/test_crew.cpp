// Each worker works once a round, and all that they wrote is the caller's afterwards.
#include <gtest/gtest.h>
#include <sched.h>

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

int processors_of_this_thread() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// By worker: on how many processors it may run.
std::vector<int> freedom_of(Crew& crew) {
  std::vector<int> processors(static_cast<std::size_t>(crew.workers()));
  const auto work = [&](int worker) noexcept {
    processors[static_cast<std::size_t>(worker)] = processors_of_this_thread();
  };
  crew.begin(work);
  crew.join();
  return processors;
}

TEST(Crew, IsKeptInPlaceButForTheCaller) {
  const int all = processors_of_this_thread();
  const int here = sched_getcpu();
  Crew kept(3, true, {here, here, here, here});
  EXPECT_EQ(freedom_of(kept), (std::vector<int>{all, 1, 1}));
  Crew more_than_places(3, true, {here, here});
  EXPECT_EQ(freedom_of(more_than_places), (std::vector<int>{all, all, all}));
}

TEST(Crew, MayEndWithoutARound) {
  for (int round = 0; round < 50; ++round) Crew crew(4);
}

}  // namespace
}  // namespace plait::fused
