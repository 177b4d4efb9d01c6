// An all-gather and its product whose data are on a device, beside what the processor makes of the same: every element
// of every output.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fused/gemm/all_gather.h"
#include "tests/fused/device_ranks.h"

namespace plait::fused {
namespace {

struct GatherCase {
  int ranks = 3;
  std::int64_t rows = 11, depth = 5;
  std::vector<std::int64_t> columns = {4};  // by rank
  std::size_t direct_from = direct_always;
  std::size_t offset = 0;  // of all data, in their allocations
  bool host_x = false;
  bool pooled = false;  // all data
  bool cuda = true;     // whether PLAIT_CHANNELS has it
  std::string options = {};

  std::int64_t columns_of(int rank) const { return columns[static_cast<std::size_t>(rank) % columns.size()]; }
  // Who has neither weights nor an output has nothing on a device.
  bool on_devices() const {
    for (int rank = 0; rank < ranks; ++rank)
      if (columns_of(rank) == 0) return false;
    return direct_from == direct_always && cuda;
  }
  std::string text() const {
    return std::to_string(ranks) + " ranks, " + std::to_string(rows) + " x " + std::to_string(depth) + " x " +
           std::to_string(columns_of(0)) + ", offset " + std::to_string(offset) + ", " + options;
  }
};

// Of rank `of` in a round, all rows: a rank has its share.
std::vector<float> expected_rows(const GatherCase& given, int rank, int round) {
  const std::vector<float> x = numbers(seed(0, round), given.rows * given.depth);
  const std::int64_t columns = given.columns_of(rank);
  const std::vector<float> weights = numbers(rank, given.depth * columns);
  std::vector<float> made;
  for (std::int64_t row = 0; row < given.rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::int64_t at = 0; at < given.depth; ++at)
        sum += x[static_cast<std::size_t>(row * given.depth + at)] *
               weights[static_cast<std::size_t>(at * columns + column)];
      made.push_back(sum);
    }
  return made;
}

class GathersOnDevices : public DeviceRanks {
 protected:
  static std::string run_case(const GatherCase& given) {
    return on_ranks(
        given.ranks, given.direct_from,
        [&](const Here& here) -> std::string {
          const Range rows = share_of(given.rows, given.ranks, here.rank);
          const std::int64_t columns = given.columns_of(here.rank);
          const DeviceCopy weights(static_cast<std::size_t>(given.depth * columns) * sizeof(float), given.offset,
                                   given.pooled);
          weights.write(numbers(here.rank, given.depth * columns).data());
          const DeviceCopy output(static_cast<std::size_t>(given.rows * columns) * sizeof(float), given.offset,
                                  given.pooled);
          const DeviceCopy x(static_cast<std::size_t>(rows.length() * given.depth) * sizeof(float), given.offset,
                             given.pooled);
          std::vector<float> here_x(static_cast<std::size_t>(rows.length() * given.depth));
          auto made = AllGatherGemm::make(here.all,
                                          {.rows = given.rows,
                                           .depth = given.depth,
                                           .columns = columns,
                                           .weights = columns > 0 ? weights.address<void>() : nullptr,
                                           .output = columns > 0 ? output.address<void>() : nullptr,
                                           .options = given.options.c_str()},
                                          here.members);
          if (!made.ok()) return made.status().message();
          const bool there = (*made)->description().find("\"on\": \"devices\"") != std::string::npos;
          const std::string wrong = run(
              **made, output,
              [&](int round) {
                const std::vector<float> all = numbers(seed(0, round), given.rows * given.depth);
                std::copy_n(all.begin() + rows.begin * given.depth, here_x.size(), here_x.begin());
                x.write(here_x.data());
                if (here_x.empty()) return (*made)->start(nullptr);
                return (*made)->start(given.host_x ? here_x.data() : x.address<float>());
              },
              [&](int round) { return expected_rows(given, here.rank, round); });
          return there == given.on_devices() ? wrong : (*made)->description();
        },
        given.cuda);
  }
};

TEST_F(GathersOnDevices, AreRight) {
  for (const int ranks : {1, 2, 3, 5, 7}) {
    const GatherCase given{.ranks = ranks, .rows = 300, .depth = 20, .columns = {130, 7, 64}, .options = "slice=4096"};
    const long before = FakeDevice::instance().kernels();
    EXPECT_EQ(run_case(given), "") << given.text();
    // One sends and multiplies; where rows came too late, as here all but one rank's may, another takes what is left.
    const long more = FakeDevice::instance().kernels() - before - ranks * device_rounds;
    EXPECT_GE(more, 0);
    EXPECT_LE(more, (ranks - 1) * device_rounds);
  }
}

// Slices of less than a row, and of all; blocks that lie in several.
TEST_F(GathersOnDevices, SlicesOfAnyLength) {
  for (const char* slice : {"slice=1", "slice=100", "slice=3000", "slice=100000"})
    EXPECT_EQ(run_case({.ranks = 3, .rows = 200, .depth = 24, .columns = {65}, .options = slice}), "") << slice;
}

TEST_F(GathersOnDevices, FewerRowsThanRanks) {
  EXPECT_EQ(run_case({.ranks = 5, .rows = 2, .depth = 3, .columns = {2}}), "");
}

TEST_F(GathersOnDevices, ARankWithoutColumnsTakesAllByCopies) {
  EXPECT_EQ(run_case({.ranks = 3, .rows = 20, .depth = 4, .columns = {5, 0, 3}}), "");
}

// Others store into memory of the plan's own alone.
TEST_F(GathersOnDevices, DataOfAPoolNeedNoHandle) {
  EXPECT_EQ(run_case({.ranks = 3, .rows = 50, .depth = 4, .columns = {5}, .pooled = true}), "");
}

TEST_F(GathersOnDevices, WithoutTheChannelTheyGoByCopies) {
  EXPECT_EQ(run_case({.ranks = 3, .rows = 50, .depth = 4, .columns = {5}, .cuda = false}), "");
}

TEST_F(GathersOnDevices, OfEveryShapeAreRight) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int at = 0; at < 50; ++at) {
    const GatherCase given{
        .ranks = std::array{1, 2, 3, 5, 7}[static_cast<std::size_t>(draw(0, 4))],
        .rows = draw(1, 300),
        .depth = draw(0, 1) == 0 ? 4 * draw(1, 8) : draw(1, 30),
        .columns = {draw(1, 140), draw(1, 70)},
        .direct_from = draw(0, 4) == 0 ? direct_never : direct_always,
        .offset = 4 * static_cast<std::size_t>(draw(0, 1) * draw(0, 4)),
        .host_x = draw(0, 2) == 0,
        .options = "slice=" + std::to_string(draw(0, 8000)) + (draw(0, 2) == 0 ? " order=plain" : "")};
    EXPECT_EQ(run_case(given), "") << given.text();
  }
}

// Nothing comes in time in some of the kernels: a second one does what they leave, and nothing twice.
TEST_F(GathersOnDevices, WhatComesTooLateIsMultipliedBehind) {
  constexpr int always = std::numeric_limits<int>::max();
  const GatherCase given{.ranks = 3, .rows = 150, .depth = 8, .columns = {70}, .options = "slice=512"};
  // Each rank's kernel asks once; those behind it are among them.
  for (const long calls : {0L, 1L, 4L}) {
    FakeDevice::instance().fail("parts in time", calls, always);
    EXPECT_EQ(run_case(given), "") << calls;
    FakeDevice::instance().fail("parts in time", -1, 0);
  }
}

TEST_F(GathersOnDevices, MissingRowsAreRefused) {
  EXPECT_EQ(on_ranks(3, direct_always,
                     [](const Here& here) -> std::string {
                       const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, 12)), output(36 * sizeof(float));
                       auto made = AllGatherGemm::make(here.all,
                                                       {.rows = 9,
                                                        .depth = 3,
                                                        .columns = 4,
                                                        .weights = weights.address<void>(),
                                                        .output = output.address<void>()},
                                                       here.members);
                       if (!made.ok()) return made.status().message();
                       return refuse_missing_input(here, **made, DeviceCopy::of(numbers(7, 9)), output);
                     }),
            "");
}

// A kernel that breaks down is an error on all ranks; nobody waits for what it has not sent.
TEST_F(GathersOnDevices, AKernelThatFailsEndsTheRun) {
  EXPECT_EQ(on_ranks(3, direct_always,
                     [](const Here& here) -> std::string {
                       const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, 8 * 70));
                       const DeviceCopy output(150 * 70 * sizeof(float)), x(50 * 8 * sizeof(float));
                       auto made = AllGatherGemm::make(here.all,
                                                       {.rows = 150,
                                                        .depth = 8,
                                                        .columns = 70,
                                                        .weights = weights.address<void>(),
                                                        .output = output.address<void>(),
                                                        .options = "slice=512"},
                                                       here.members);
                       if (!made.ok()) return made.status().message();
                       if (here.rank == 0) FakeDevice::instance().fail("cuLaunchKernel", 0, 700);
                       Status status = (*made)->start(x.address<float>());
                       if (status.ok()) status = (*made)->wait();
                       return status.ok() ? "it went well" : "";
                     }),
            "");
  FakeDevice::instance().fail("cuLaunchKernel", -1, 0);
}

}  // namespace
}  // namespace plait::fused
