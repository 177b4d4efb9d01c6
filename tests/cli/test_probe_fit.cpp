// plait probe: the machine that is found from samples of a machine that is known.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tuner/measure/device_measure.h"
#include "tuner/measure/probe_samples.h"

namespace plait::tuner {
namespace {

constexpr std::size_t sizes[] = {8, 64, 512, 4096, 65536, 262144, 1048576, 4194304};

ProbeCurve curve_of(const std::function<double(double)>& seconds, double spread = 0.01) {
  ProbeCurve curve;
  for (const std::size_t bytes : sizes) curve.push_back({bytes, seconds(static_cast<double>(bytes)), spread});
  return curve;
}

// What a link of these figures would show, by the meaning that plan/model/machine.h gives them.
LinkSamples samples_of(const LinkLevel& level, double gamma) {
  LinkSamples link;
  link.level = level.name;
  link.network = level.network;
  const double slope = level.port_seconds_per_byte + (level.network ? 2 : 1) * level.cpu_seconds_per_byte;
  const double streaming = std::max(level.port_seconds_per_byte, level.cpu_seconds_per_byte);
  link.one_way = curve_of([&](double n) { return level.latency + 2 * level.overhead + slope * n; });
  link.stream = curve_of([&](double n) { return level.overhead + streaming * n; });
  link.both_ways = curve_of([&](double n) { return level.overhead + (level.half_duplex ? 2 : 1) * streaming * n; });
  link.reduced = curve_of([&](double n) { return level.overhead + (streaming + gamma) * n; });
  if (!level.network) return link;
  link.messages_per_second = {1 / level.overhead, 1 / level.port_seconds_per_message};
  link.bytes_per_second = {1 / streaming, 1 / level.port_seconds_per_byte};
  return link;
}

const LinkLevel network{.name = "node",
                        .latency = 12e-6,
                        .overhead = 2e-6,
                        .cpu_seconds_per_byte = 1 / 6e9,
                        .port_seconds_per_byte = 1 / 1.2e9,
                        .port_seconds_per_message = 1e-6,
                        .network = true};
const LinkLevel local{.name = "core", .latency = 0.4e-6, .overhead = 0.05e-6, .cpu_seconds_per_byte = 1 / 10e9};

TEST(ProbeFit, FindsTheFiguresOfALinkThatIsKnown) {
  ProbeSamples samples;
  samples.links = {samples_of(network, 0), samples_of(local, 1 / 5e9)};
  samples.ranks_per_core = 2;
  const ProbeFit fit = fit_machine(samples);
  ASSERT_EQ(fit.machine.levels.size(), 2u);
  const LinkLevel& node = fit.machine.levels[0];
  EXPECT_EQ(node.name, "node");
  EXPECT_TRUE(node.network);
  EXPECT_NEAR(node.latency / network.latency, 1, 0.1);
  EXPECT_NEAR(node.overhead / network.overhead, 1, 0.1);
  EXPECT_NEAR(node.port_seconds_per_byte / network.port_seconds_per_byte, 1, 0.02);
  EXPECT_NEAR(node.cpu_seconds_per_byte / network.cpu_seconds_per_byte, 1, 0.2);
  EXPECT_NEAR(node.port_seconds_per_message / network.port_seconds_per_message, 1, 1e-6);
  EXPECT_FALSE(node.half_duplex);
  const LinkLevel& core = fit.machine.levels[1];
  EXPECT_FALSE(core.network);
  EXPECT_EQ(core.port_seconds_per_byte, 0);
  EXPECT_NEAR(core.cpu_seconds_per_byte / local.cpu_seconds_per_byte, 1, 0.02);
  EXPECT_NEAR(fit.machine.reduce_seconds_per_byte * 5e9, 1, 0.02);
  EXPECT_EQ(fit.machine.ranks_per_core, 2);
  for (const FitResidual& residual : fit.residuals)
    EXPECT_LT(residual.relative, 0.1) << residual.level << residual.curve;
}

TEST(ProbeFit, SeesThatBothDirectionsShareARate) {
  LinkLevel half = network;
  half.half_duplex = true;
  ProbeSamples samples;
  samples.links = {samples_of(half, 0), samples_of(local, 0)};
  const ProbeFit fit = fit_machine(samples);
  EXPECT_TRUE(fit.machine.levels[0].half_duplex);
  EXPECT_EQ(fit.machine.reduce_seconds_per_byte, 0);
}

// The residuals are what the points are off by, and a few points that are off do not move the line far.
TEST(ProbeFit, ResidualsTellHowFarThePointsAre) {
  constexpr unsigned seed = 20;
  std::mt19937 random(seed);
  std::normal_distribution<double> off(0, 0.1);
  ProbeSamples samples;
  samples.links = {samples_of(local, 0)};
  for (ProbeCurve* curve : {&samples.links[0].one_way, &samples.links[0].stream})
    for (ProbePoint& point : *curve) point.seconds *= std::exp(off(random));
  const ProbeFit fit = fit_machine(samples);
  EXPECT_NEAR(fit.machine.levels[0].cpu_seconds_per_byte / local.cpu_seconds_per_byte, 1, 0.2) << "seed " << seed;
  ASSERT_EQ(fit.residuals.size(), 2u);
  for (const FitResidual& residual : fit.residuals) {
    EXPECT_GT(residual.relative, 0.02) << "seed " << seed;
    EXPECT_LT(residual.relative, 0.3) << "seed " << seed;
  }
}

// What a network of 250 Mbit/s shows whose messages take `way_s`: from 256 KiB on a sender waits for each message's
// arrival to be told, there and back.
LinkSamples samples_of_long_way(double way_s) {
  constexpr double gap_s = 8e-6, seconds_per_byte = 1 / 31.25e6;
  const auto stream = [=](double n) { return gap_s + (n >= 262144 ? 2 * way_s : 0) + n * seconds_per_byte; };
  LinkSamples link;
  link.level = "node";
  link.network = true;
  link.one_way = curve_of([=](double n) { return way_s + 2 * gap_s + n * seconds_per_byte; });
  link.stream = curve_of(stream);
  link.both_ways = curve_of([=](double n) { return way_s + 2 * gap_s + n * seconds_per_byte; });
  link.reduced = link.stream;
  link.messages_per_second = {1 / gap_s};
  link.bytes_per_second = {1 / seconds_per_byte};
  link.by_channel = {{"ucx", link.one_way, link.stream}};
  return link;
}

TEST(ProbeFit, ALongWayIsNoPartOfTheGapNorOfTheRate) {
  for (const double way_s : {1e-6, 100e-6, 1e-3, 4e-3, 16e-3, 50e-3}) {
    SCOPED_TRACE("one way takes " + std::to_string(way_s));
    ProbeSamples samples;
    samples.links = {samples_of_long_way(way_s)};
    const ProbeFit fit = fit_machine(samples);
    EXPECT_EQ(fit.doubt, "");
    const LinkLevel& node = fit.machine.levels[0];
    const double gap_s = std::min(8e-6, (way_s + 16e-6) / 4);
    EXPECT_NEAR(node.overhead / gap_s, 1, 0.2);  // 64 bytes are taken for none
    EXPECT_NEAR((node.latency + 2 * node.overhead) / (way_s + 16e-6), 1, 0.1);
    EXPECT_NEAR(node.port_seconds_per_byte * 31.25e6, 1, 0.01);
    EXPECT_LT(node.cpu_seconds_per_byte * 31.25e6, 0.1);
    EXPECT_FALSE(node.half_duplex);
    ASSERT_EQ(node.channels.size(), 1u);
    EXPECT_NEAR(node.channels[0].overhead / gap_s, 1, 0.2);
    EXPECT_NEAR(node.channels[0].seconds_per_byte * 31.25e6, 1, 0.02);
    for (const FitResidual& residual : fit.residuals) EXPECT_LT(residual.relative, 0.1) << residual.curve;
  }
}

// The wait of a single long message is not taken for its bytes.
TEST(ProbeFit, ALongWayAndACurveThatEndedEarly) {
  ProbeSamples samples;
  samples.links = {samples_of_long_way(16e-3)};
  LinkSamples& link = samples.links[0];
  for (ProbeCurve* curve : {&link.stream, &link.by_channel[0].stream}) curve->resize(6);
  ASSERT_EQ(link.stream.back().bytes, 262144u);
  const ProbeFit fit = fit_machine(samples);
  EXPECT_NEAR(fit.machine.levels[0].channels[0].seconds_per_byte * 31.25e6, 1, 0.1);
}

// Messages of a stream that follow one another by a part of the latency were waited for: no gap can be had from them.
TEST(ProbeFit, RefusesAGapThatIsAPartOfTheLatency) {
  ProbeSamples samples;
  samples.links = {samples_of_long_way(16e-3)};
  for (ProbePoint& point : samples.links[0].stream) point.seconds += 8e-3;
  const ProbeFit fit = fit_machine(samples);
  EXPECT_NE(fit.doubt.find("node"), std::string::npos) << fit.doubt;
  EXPECT_NE(fit.doubt.find("latency"), std::string::npos) << fit.doubt;
  // Of one channel alone: it is left out, the machine stands.
  samples.links = {samples_of_long_way(16e-3)};
  for (ProbePoint& point : samples.links[0].by_channel[0].stream) point.seconds += 8e-3;
  const ProbeFit without = fit_machine(samples);
  EXPECT_EQ(without.doubt, "");
  EXPECT_TRUE(without.machine.levels[0].channels.empty());
  ASSERT_FALSE(without.remarks.empty());
  EXPECT_NE(without.remarks[0].find("ucx"), std::string::npos) << without.remarks[0];
}

TEST(ProbeFit, SaysWhereSocketsBuffersMaySetTheRate) {
  ProbeSamples samples;
  samples.links = {samples_of_long_way(4e-3)};
  EXPECT_TRUE(fit_machine(samples).remarks.empty());
  samples.links = {samples_of_long_way(50e-3)};
  ASSERT_EQ(fit_machine(samples).remarks.size(), 1u);
  EXPECT_NE(fit_machine(samples).remarks[0].find("tcp_wmem"), std::string::npos);
}

TEST(ProbeFit, ACurveThatEndedEarlyIsEnough) {
  ProbeSamples samples;
  samples.links = {samples_of(network, 0)};
  LinkSamples& link = samples.links[0];
  for (ProbeCurve* curve : {&link.one_way, &link.stream, &link.both_ways, &link.reduced}) curve->resize(2);
  link.bytes_per_second.clear();
  link.messages_per_second.clear();
  const ProbeFit fit = fit_machine(samples);
  EXPECT_GT(fit.machine.levels[0].latency, 0);
  EXPECT_TRUE(std::isfinite(fit.machine.levels[0].port_seconds_per_byte));
  EXPECT_TRUE(std::isfinite(fit.machine.reduce_seconds_per_byte));
}

TEST(ProbeFit, NoiseIsWhatThreeQuartersOfThePointsStayBelow) {
  ProbeSamples samples;
  samples.links = {samples_of(local, 0)};
  EXPECT_NEAR(noise(samples), 0.01, 1e-12);
  samples.host["allreduce"] = curve_of([](double) { return 1e-6; }, 0.5);
  EXPECT_NEAR(noise(samples), 0.01, 1e-12);
  for (int copy = 0; copy < 4; ++copy) samples.host["bcast" + std::to_string(copy)] = samples.host["allreduce"];
  EXPECT_NEAR(noise(samples), 0.5, 1e-12);
}

TEST(ProbeFit, CopiesOfDevicesAreLines) {
  ProbeSamples samples;
  samples.links = {samples_of(network, 0), samples_of(local, 0)};
  samples.links[1].devices = curve_of([](double n) { return 3e-6 + n / 4e11; });
  samples.to_device = curve_of([](double n) { return 8e-6 + n / 5e10; });
  const Machine machine = fit_machine(samples).machine;
  EXPECT_FALSE(machine.levels[0].devices.known());
  EXPECT_NEAR(machine.levels[1].devices.seconds_per_byte * 4e11, 1, 0.01);
  EXPECT_NEAR(machine.levels[1].devices.latency, 3e-6, 1e-8);
  EXPECT_NEAR(machine.to_device.seconds_per_byte * 5e10, 1, 0.01);
  EXPECT_FALSE(machine.from_device.known());
}

// Messages were measured before it was known which rank has which GPU: two packages, and an island on each; on the
// first package both ranks have a GPU, on the other they share one.
TEST(ProbeFit, LevelsOfGpusHaveTheLinksBetweenTheirRanks) {
  std::vector<Location> locations(4);
  for (int rank = 0; rank < 4; ++rank) {
    Location& one = locations[static_cast<std::size_t>(rank)];
    one.package = rank / 2;
    one.core = rank;
  }
  const Hierarchy measured = Hierarchy::from_locations(locations);
  std::vector<LinkSamples> links;
  for (const Level& level : measured.levels()) links.emplace_back().channels = name(level.kind);
  for (int rank = 0; rank < 4; ++rank) locations[static_cast<std::size_t>(rank)].island = rank % 2;
  const Hierarchy wanted = Hierarchy::from_locations(locations);
  const std::vector<LinkSamples> found = links_between(wanted, measured, links);
  ASSERT_EQ(found.size(), wanted.levels().size());
  EXPECT_EQ(found[0].level, "island");
  EXPECT_EQ(found[0].channels, "core") << "ranks 0 and 1 are of one package";
  EXPECT_EQ(found[1].level, "package");
  EXPECT_EQ(found[1].channels, "package") << "ranks 0 and 2 are of two";
}

}  // namespace
}  // namespace plait::tuner
