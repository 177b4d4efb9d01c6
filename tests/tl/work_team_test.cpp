#include "core/work_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/reduction.h"
#include "perf/helped.h"
#include "tl/memory.h"
#include "tl/shm/stream_copy.h"

namespace plait::tl {
namespace {

using Bytes = std::vector<std::byte>;

#if defined(__SANITIZE_THREAD__)
constexpr int rounds = 2000;
#else
constexpr int rounds = 20000;
#endif

Bytes random_bytes(std::mt19937_64& random, std::size_t bytes) {
  Bytes result(bytes);
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const std::uint64_t drawn = random();
    std::memcpy(result.data() + at, &drawn, 8);
  }
  for (; at < bytes; ++at) result[at] = static_cast<std::byte>(random());
  return result;
}

// ---- Runs ----

TEST(WorkTeam, EveryPartIsDoneOnce) {
  for (const int workers : {0, 1, 2, 3}) {
    perf::Helped helped(workers);
    for (int round = 0; round < rounds; ++round) {
      const auto parts = static_cast<std::uint32_t>(round % 23);  // none, one, fewer and more than there are threads
      std::array<int, 23> done{};                                 // not atomic: a run's end covers what its parts wrote
      helped.team.set_threads(1 + round % 5);
      helped.team.run(parts, [&](std::uint32_t part) { done[part] += 1 + round; });
      for (std::uint32_t part = 0; part < done.size(); ++part) ASSERT_EQ(done[part], part < parts ? 1 + round : 0);
    }
  }
}

// A part that waits for another one ends only where two threads run them.
TEST(WorkTeam, WorkersWorkBesideTheLeader) {
  for (const int workers : {1, 3}) {
    perf::Helped helped(workers);
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> begun{0};
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      helped.team.run(static_cast<std::uint32_t>(1 + workers), [&](std::uint32_t) {
        ++begun;
        while (begun < 1 + workers && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      });
      ASSERT_EQ(begun, 1 + workers);
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "a worker did not come";
      // Long enough to sleep, or not.
      if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
    }
    EXPECT_EQ(helped.team.by_workers(), 20u * static_cast<unsigned>(workers));
  }
}

TEST(WorkTeam, TheLeaderSleepsWhileAPartIsLate) {
  perf::Helped helped(1);
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> taken{false};
    bool late = false;
    const auto leader = std::this_thread::get_id();
    helped.team.run(2, [&](std::uint32_t) {
      if (std::this_thread::get_id() == leader) {
        while (!taken) std::this_thread::yield();
        return;
      }
      taken = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      late = true;
    });
    EXPECT_TRUE(late);
  }
}

// Workers that are announced and do not come only lack.
TEST(WorkTeam, NobodyWaitsForAWorkerThatHasNotBegun) {
  WorkTeam team;
  team.set_workers(3);
  team.set_threads(4);
  EXPECT_EQ(team.threads(), 4);
  int done = 0;
  team.run(100, [&](std::uint32_t) { ++done; });
  EXPECT_EQ(done, 100);
  EXPECT_EQ(team.by_workers(), 0u);
}

TEST(WorkTeam, NoMoreThreadsWorkThanAreWanted) {
  perf::Helped helped(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const int threads : {-1, 0, 1}) {
    helped.team.set_threads(threads);
    EXPECT_EQ(own_threads(), 1);
    helped.team.run(50, [](std::uint32_t) {});
    EXPECT_EQ(helped.team.by_workers(), 0u);
  }
  helped.team.set_threads(100);
  EXPECT_EQ(own_threads(), 3);
}

TEST(WorkTeam, WhatAPartSharesOutIsItsOwn) {
  perf::Helped helped(2);
  Bytes from(1 << 20, std::byte{7}), to(1 << 20);
  helped.team.run(2, [&](std::uint32_t part) {
    EXPECT_EQ(own_threads(), 1);
    const std::size_t half = to.size() / 2;
    shared_copy(to.data() + part * half, from.data() + part * half, half);
  });
  EXPECT_EQ(to, from);
  EXPECT_EQ(own_threads(), 3);
}

TEST(WorkTeam, IsTheCallingThreadsOwn) {
  perf::Helped helped(1);
  int others = 0;
  std::thread([&] { others = own_threads(); }).join();
  EXPECT_EQ(others, 1);
  EXPECT_EQ(own_threads(), 2);
}

// ---- Cuts ----

TEST(SharedWork, PartsCoverEverythingAndShareNoLine) {
  alignas(64) static std::byte memory[256];
  for (const std::size_t element : {1, 2, 4, 8, 12, 16, 24, 32, 60, 4096})
    for (const std::size_t offset : {0, 1, 4, 8, 24, 48, 63})
      for (const std::size_t elements : {0, 1, 2, 3, 7, 64, 65, 1000, 4097, 1 << 20})
        for (const std::uint32_t parts : {1, 2, 3, 7, 64, 256}) {
          const SharedWork work{elements, element, memory + offset};
          ASSERT_EQ(work.begin(0, parts), 0u);
          ASSERT_EQ(work.begin(parts, parts), elements);
          for (std::uint32_t part = 1; part < parts; ++part) {
            const std::size_t begin = work.begin(part, parts), before = work.begin(part - 1, parts);
            ASSERT_LE(before, begin);
            ASSERT_LE(begin, elements);
            // Nearly equal: a cut is moved by less than a whole number of lines.
            const std::size_t lines = 64 / std::gcd(std::size_t{64}, element);
            ASSERT_LT(elements * part / parts - std::min(begin, elements * part / parts), lines + 1);
            if (begin == 0 || begin == elements || offset % element != 0 || 64 % element != 0) continue;
            ASSERT_EQ((reinterpret_cast<std::uintptr_t>(memory) + offset + begin * element) % 64, 0u);
          }
        }
}

TEST(SharedWork, LittleIsNotShared) {
  constexpr std::size_t least = SharedWork::least_part_bytes;
  EXPECT_EQ((SharedWork{0, 4, nullptr}.parts(2)), 1u);
  EXPECT_EQ((SharedWork{(2 * least - 4) / 4, 4, nullptr}.parts(8)), 1u);
  EXPECT_EQ((SharedWork{2 * least / 4, 4, nullptr}.parts(8)), 2u);
  EXPECT_EQ((SharedWork{2 * least / 4, 4, nullptr}.parts(1)), 1u);
  EXPECT_EQ((SharedWork{1 << 18, 4, nullptr}.parts(3)), 3 * SharedWork::parts_a_thread);
  EXPECT_EQ((SharedWork{1 << 24, 4, nullptr}.parts(3)), (1u << 26) / SharedWork::most_part_bytes) << "none is long";
}

// ---- What is shared out ----

// Lengths about the least that is shared, and some that no number of threads divides.
std::vector<std::size_t> lengths(std::size_t element) {
  constexpr std::size_t least = SharedWork::least_part_bytes;
  std::vector<std::size_t> elements;
  for (const std::size_t bytes :
       {least, 2 * least - 1, 2 * least, 2 * least + element, 3 * least + 7 * element, 7 * least})
    elements.push_back(bytes / element);
  return elements;
}

TEST(SharedOut, CopiesAreRight) {
  std::mt19937_64 random(1);
  for (const int workers : {0, 1, 2}) {
    perf::Helped helped(workers);
    for (const std::size_t bytes : lengths(1))
      for (const std::size_t offset : {0, 1, 24}) {
        const Bytes from = random_bytes(random, bytes + 100);
        Bytes expected = random_bytes(random, bytes + 200), copied = expected, streamed = expected;
        std::memcpy(expected.data() + offset, from.data() + 3, bytes);
        shared_copy(copied.data() + offset, from.data() + 3, bytes);
        detail::stream(streamed.data() + offset, from.data() + 3, bytes);
        ASSERT_TRUE(copied == expected && streamed == expected) << bytes << " bytes, " << workers << " workers";
      }
  }
}

// Bytes drawn at random are no numbers that differ in which NaN comes out: those of few bits are finite.
Bytes numbers(std::mt19937_64& random, Element element, std::size_t elements) {
  const std::size_t bytes = extent(element);
  Bytes all(elements * bytes);
  const std::string kind(name(element));
  const auto real = [&](auto value, std::size_t size) {
    for (std::size_t at = 0; at + size <= all.size(); at += size) {
      value = static_cast<decltype(value)>(static_cast<std::int64_t>(random() % 2001) - 1000) / 7;
      std::memcpy(all.data() + at, &value, sizeof value);
    }
  };
  if (kind.find("f80") != std::string::npos || kind == "c80") {
    real(0.0L, 16);
  } else if (kind.find("128") != std::string::npos) {
    real(static_cast<__float128>(0), 16);
  } else if (kind == "f64" || kind == "c64" || kind.starts_with("pair_f64")) {
    real(0.0, 8);
  } else if (kind == "f32" || kind == "c32" || kind.starts_with("pair_f32")) {
    real(0.0f, 4);
  } else {
    all = random_bytes(random, all.size());
    if (element == Element::bool8)
      for (std::byte& one : all) one &= std::byte{1};
  }
  return all;
}

TEST(SharedOut, ReductionsHaveTheSameBits) {
  std::mt19937_64 random(2);
  perf::Helped helped(2);
  const auto by_one = [](auto&& work) {
    WorkTeam* const team = own_team();
    set_own_team(nullptr);
    work();
    set_own_team(team);
  };
  for (int e = 0; e < static_cast<int>(Element::count_); ++e) {
    const auto element = static_cast<Element>(e);
    const std::size_t bytes = extent(element), most = lengths(bytes).back();
    std::vector<Bytes> sources;
    for (int s = 0; s < 3; ++s) sources.push_back(numbers(random, element, most + 1));
    for (int o = 0; o < static_cast<int>(Op::count_); ++o) {
      const Reducer reducer = make_reducer(static_cast<Op>(o), element);
      if (reducer.kernel == nullptr) continue;
      const std::size_t elements = lengths(bytes)[static_cast<std::size_t>(o) % lengths(bytes).size()];
      const std::string what = std::string(name(static_cast<Op>(o))) + " of " + std::string(name(element)) + ", " +
                               std::to_string(elements) + " elements";
      SCOPED_TRACE(what);
      // Two operands, the result over the left one, which starts within a cache line.
      Bytes expected = sources[0], got = sources[0];
      reducer.kernel(expected.data() + bytes, expected.data() + bytes, sources[1].data(), elements);
      combine(reducer, got.data() + bytes, got.data() + bytes, sources[1].data(), elements);
      ASSERT_TRUE(got == expected);
      // Three, to two results, streamed or not; one result is a source.
      for (const bool streaming : {false, true}) {
        std::array<std::array<Bytes, 2>, 2> results;  // by one thread, by three
        for (auto& pair : results) pair = {sources[0], Bytes(sources[0].size(), std::byte{0})};
        const auto reduce_into = [&](std::array<Bytes, 2>& into) {
          const std::array<std::byte*, 2> to = {into[0].data(), into[1].data()};
          const std::array<const std::byte*, 3> from = {into[0].data(), sources[1].data(), sources[2].data()};
          reduce_many(reducer, {to.data(), 2, from.data(), 3, elements, streaming});
        };
        by_one([&] { reduce_into(results[0]); });
        reduce_into(results[1]);
        // Padding is not promised, and these have none or leave it alone.
        ASSERT_TRUE(results[0] == results[1]) << "streaming " << streaming;
      }
    }
  }
  EXPECT_GT(helped.team.by_workers(), 0u);
}

// A user's operator runs in the thread that asked for it.
TEST(SharedOut, AUsersOperatorIsNotShared) {
  perf::Helped helped(2);
  static std::atomic<int> calls;
  calls = 0;
  const Reducer reducer{.apply = [](const Reducer&, void*, const void*, const void*, std::size_t) { ++calls; },
                        .element_bytes = 4};
  Bytes memory(1 << 20);
  combine(reducer, memory.data(), memory.data(), memory.data(), memory.size() / 4);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(helped.team.by_workers(), 0u);
}

}  // namespace
}  // namespace plait::tl
