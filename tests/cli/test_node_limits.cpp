#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tuner/text/bench_report.h"
#include "tuner/text/limit_report.h"
#include "tuner/text/node_limits.h"

namespace plait::tuner {
namespace {

constexpr double us = 1e-6, gb = 1e9;

// A curve of one rate, in bytes a second.
MoveCurve steady(double rate) {
  MoveCurve curve;
  for (std::size_t bytes = 8; bytes <= std::size_t{64} << 20; bytes *= 8) {
    curve.push_back({bytes, static_cast<double>(bytes) / rate});
  }
  return curve;
}

NodeLimits two_ranks() {
  NodeLimits limits;
  limits.ranks = limits.cores = 2;
  limits.copy_all = steady(8 * gb);
  limits.reduce_i32_all = steady(4 * gb);
  limits.pull_all = steady(2 * gb);
  limits.mapped_all = steady(1 * gb);
  limits.spin_round_trip_s = 0.3 * us;
  limits.yield_round_trip_s = 2 * us;
  return limits;
}

TEST(MoveCurve, RatesAreInterpolatedBetweenSizes) {
  const MoveCurve curve = {{100, 100e-6}, {10000, 1000e-6}};  // 1 and 10 MB/s
  EXPECT_DOUBLE_EQ(seconds_at(curve, 100), 100e-6);
  EXPECT_DOUBLE_EQ(seconds_at(curve, 10000), 1000e-6);
  EXPECT_DOUBLE_EQ(seconds_at(curve, 1000), 1000 / 5.5e6);
  EXPECT_DOUBLE_EQ(seconds_at(curve, 1), 100e-6);  // no move is shorter than the smallest
  EXPECT_DOUBLE_EQ(seconds_at(curve, 100000), 10000e-6);
  EXPECT_EQ(seconds_at({}, 1000), 0);
}

TEST(NodeLimits, SharedBuffersAreCopiedByAllRanksTogether) {
  const NodeLimits limits = two_ranks();
  const double size = 1 << 20, copy_s = size / (8 * gb);
  const auto limit = [&](Collective collective) {
    return limit_seconds(limits, collective, 1 << 20, BufferKind::shared);
  };
  EXPECT_DOUBLE_EQ(limit(Collective::allreduce), copy_s);
  EXPECT_DOUBLE_EQ(limit(Collective::bcast), copy_s / 2);
  EXPECT_DOUBLE_EQ(limit(Collective::reduce), copy_s * 0.75);
  EXPECT_DOUBLE_EQ(limit(Collective::reduce_scatter), copy_s * 0.75);
  EXPECT_DOUBLE_EQ(limit(Collective::allgather), copy_s * 2);
  EXPECT_DOUBLE_EQ(limit(Collective::alltoall), copy_s * 2);
  EXPECT_DOUBLE_EQ(limit(Collective::gather), copy_s);
}

TEST(NodeLimits, PrivateBuffersCrossBetweenProcesses) {
  NodeLimits limits = two_ranks();
  const double half = 1 << 19;
  const auto limit = [&](Collective collective) {
    return limit_seconds(limits, collective, 1 << 20, BufferKind::ordinary);
  };
  EXPECT_DOUBLE_EQ(limit(Collective::allreduce), half * (2 / (2 * gb) + 1 / (4 * gb)));
  EXPECT_DOUBLE_EQ(limit(Collective::bcast), half / (2 * gb));
  EXPECT_DOUBLE_EQ(limit(Collective::reduce_scatter), half * (1 / (2 * gb) + 1 / (4 * gb)));
  EXPECT_DOUBLE_EQ(limit(Collective::allgather), 2 * half * (1 / (2 * gb) + 1 / (8 * gb)));
  limits.pull_all.clear();  // forbidden: into shared memory and out of it
  EXPECT_DOUBLE_EQ(limit(Collective::bcast), half * (1 / (8 * gb) + 1 / (1 * gb)));
}

TEST(NodeLimits, ACallTakesARoundTripAtLeast) {
  NodeLimits limits = two_ranks();
  EXPECT_DOUBLE_EQ(limit_seconds(limits, Collective::barrier, 0, BufferKind::shared), 0.3 * us);
  EXPECT_DOUBLE_EQ(limit_seconds(limits, Collective::allreduce, 8, BufferKind::ordinary), 0.3 * us);
  // Sixteen ranks on two cores: eight change places on each.
  limits.ranks = 16;
  EXPECT_DOUBLE_EQ(limit_seconds(limits, Collective::barrier, 0, BufferKind::shared), 4 * 2 * us);
}

TEST(LimitReport, ATableHasARowASize) {
  NodeLimits limits = two_ranks();
  limits.copy_all = {{8, 4e-9}, {1 << 20, 100 * us}};
  const std::string text = limits_text(limits, true);
  EXPECT_EQ(text.substr(0, text.find('\n')), "2 ranks on 2 cores of one node; GB/s a rank");
  EXPECT_NE(text.find("| 8 B | - | 2.00 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| 1 MiB | - | 10.49 |"), std::string::npos) << text;
  EXPECT_NE(text.find("0.300 us spinning on two cores, 2.000 us yielding on one core\n"), std::string::npos) << text;
  limits.spin_round_trip_s = 0;
  EXPECT_EQ(limits_text(limits, false).find("spinning"), std::string::npos);
}

TEST(LimitReport, JsonHasEveryPoint) {
  const auto json = limits_json(two_ranks());
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["spin_round_trip_us"], 0.3);
  EXPECT_EQ(json["copy_all"][1]["bytes"], 64);
  EXPECT_DOUBLE_EQ(json["copy_all"][1]["us"], 0.008);
  EXPECT_TRUE(json["copy_one"].empty());
}

TEST(BenchReport, OnOneNodeRowsNameTheMemorysLimit) {
  const BenchHeading heading = {.job = *equal_nodes(2, 1), .limits = two_ranks(), .buffers = BufferKind::shared};
  const BenchRow row = {
      .collective = Collective::bcast,
      .bytes = 1024,
      .measured = {.host_seconds = 4e-6, .plait_seconds = 2e-6, .batches = 3, .plan = "p", .channels = {}},
      .bound_seconds = 1e-6};
  EXPECT_EQ(bench_heading_text(heading, BenchFormat::markdown) + bench_row_text(heading, row, BenchFormat::markdown),
            "2 ranks on 1 node, buffers of MPI_Alloc_mem, root 0\n"
            "\n"
            "| collective | size | host us | Plait us | ratio | limit us | of limit | plan |\n"
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"
            "| bcast | 1 KiB | 4.00 | 2.00 | 2.00 | 1.00 | 50.0 % | p |\n");
  EXPECT_EQ(bench_heading_text(heading, BenchFormat::lines),
            "{\"ranks\":2,\"nodes\":1,\"mapping\":\"slot\",\"root\":0,\"buffers\":\"shared\","
            "\"rate_bytes_per_second\":null,\"rails\":1}\n");
  EXPECT_EQ(bench_row_text(heading, row, BenchFormat::lines).back(), '\n');
}

}  // namespace
}  // namespace plait::tuner
