// The simulated network against what one can count, and a pass of training against its bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fused/simulation/dlrm_pass.h"
#include "fused/simulation/network.h"

namespace plait::fused {
namespace {

constexpr LinkCost link{.latency_s = 1e-6, .seconds_per_byte = 1e-9};

int ring_distance(int from, int to, int length) {
  const int forward = (to - from + length) % length;
  return std::min(forward, length - forward);
}

TEST(SimulatedNetwork, PathsAreTheShortest) {
  const Network torus = Network::torus(5, 4, link);
  ASSERT_EQ(torus.nodes(), 20);
  for (int from = 0; from < 20; ++from)
    for (int to = 0; to < 20; ++to) {
      const std::vector<int> path = torus.path(from, to);
      const int distance = ring_distance(from % 5, to % 5, 5) + ring_distance(from / 5, to / 5, 4);
      EXPECT_EQ(static_cast<int>(path.size()), distance) << from << " to " << to;
      EXPECT_EQ(std::set<int>(path.begin(), path.end()).size(), path.size());
      EXPECT_TRUE(path.empty() || path.front() / 4 == from);
    }
}

TEST(SimulatedNetwork, AMessageTakesItsLinksLatenciesAndItsBytesOnce) {
  std::vector<NetworkMessage> messages = {{.from = 0, .to = 12, .ready_s = 5e-6, .bytes = 1000}};
  Network::torus(5, 4, link).deliver(messages);
  EXPECT_NEAR(messages[0].arrival_s, 5e-6 + 4 * 1e-6 + 1e-6, 1e-12);
  messages = {{.from = 3, .to = 3, .ready_s = 5e-6, .bytes = 1000}};
  Network::torus(5, 4, link).deliver(messages);
  EXPECT_EQ(messages[0].arrival_s, 5e-6);
}

TEST(SimulatedNetwork, WhatSharesALinkFollowsEachOther) {
  // The first two enter the link from 1 to 2 at once and one after the other; the third goes the other way.
  std::vector<NetworkMessage> messages = {{.from = 1, .to = 2, .ready_s = 0, .bytes = 4000},
                                          {.from = 1, .to = 2, .ready_s = 0, .bytes = 1000},
                                          {.from = 1, .to = 0, .ready_s = 0, .bytes = 1000}};
  Network::torus(5, 4, link).deliver(messages);
  EXPECT_NEAR(messages[0].arrival_s, 5e-6, 1e-12);
  EXPECT_NEAR(messages[1].arrival_s, 6e-6, 1e-12);
  EXPECT_NEAR(messages[2].arrival_s, 2e-6, 1e-12);
}

// The link from 1 to 2 is taken until 4 us; what comes from 0 at 1 us waits for one of those that 1 has wanted to send
// since 0, and not for two.
TEST(SimulatedNetwork, WhatIsOnItsWayAndWhatIsSentGoByTurns) {
  std::vector<NetworkMessage> messages = {{.from = 1, .to = 2, .ready_s = 0, .bytes = 4000},
                                          {.from = 1, .to = 2, .ready_s = 0, .bytes = 1000},
                                          {.from = 1, .to = 2, .ready_s = 0, .bytes = 1000},
                                          {.from = 0, .to = 2, .ready_s = 0, .bytes = 2000}};
  Network::torus(5, 4, link).deliver(messages);
  EXPECT_NEAR(messages[1].arrival_s, 6e-6, 1e-12);
  EXPECT_NEAR(messages[3].arrival_s, 8e-6, 1e-12);
  EXPECT_NEAR(messages[2].arrival_s, 9e-6, 1e-12);
}

TEST(SimulatedNetwork, PortsAreAllThatIsShortInACrossbar) {
  std::vector<NetworkMessage> messages;
  for (int to = 1; to < 5; ++to) messages.push_back({.from = 0, .to = to, .ready_s = 0, .bytes = 1000});
  for (int from = 1; from < 4; ++from) messages.push_back({.from = from, .to = 4, .ready_s = 0, .bytes = 1000});
  Network::crossbar(6, link).deliver(messages);
  for (int to = 1; to < 4; ++to)
    EXPECT_NEAR(messages[static_cast<std::size_t>(to - 1)].arrival_s, (2 + to) * 1e-6, 1e-12);
  double last = 0;
  for (const NetworkMessage& message : messages)
    if (message.to == 4) last = std::max(last, message.arrival_s);
  EXPECT_NEAR(last, 6e-6, 1e-12);
}

TEST(SimulatedNetwork, AnAllReduceIsThatOfItsRings) {
  EXPECT_NEAR(Network::crossbar(4, link).all_reduce_seconds(1e6), 1.5e-3 + 6e-6, 1e-12);
  EXPECT_NEAR(Network::torus(4, 2, link).all_reduce_seconds(1e6), 0.75e-3 + 6e-6 + 0.125e-3 + 2e-6, 1e-12);
}

// Uniform traffic: on a ring of k nodes a link carries k/8 of what a node sends in all.
TEST(SimulatedNetwork, AnExchangeOfAllIsNearTheBisectionsBound) {
  const Network torus = Network::torus(8, 16, {.latency_s = 7e-7, .seconds_per_byte = 4e-11});
  const DlrmShape shape{.batch = 2048, .tables = 64, .dim = 92, .pooling = 70};
  const PassComparison pass = simulate_pass(shape, {.network = torus, .device = {}, .overhead_s = 3e-7});
  const double bound = 2048.0 / 128 * 64 * 92 * 4 * 128 * 16 / 8 * 4e-11;
  EXPECT_GE(pass.exchange_s, bound * 0.99);
  EXPECT_LE(pass.exchange_s, bound * 1.1);
}

// The paper's model on 128 nodes.
class SimulatedPass : public testing::Test {
 protected:
  static PassComparison simulate(std::int64_t batch, std::int64_t tables, const DeviceCost& device = usual) {
    return simulate_pass({.batch = batch,
                          .tables = tables,
                          .dim = 92,
                          .pooling = 70,
                          .bottom_layers = 10,
                          .top_layers = 33,
                          .width = 682},
                         {.network = Network::torus(8, 16, {.latency_s = 7e-7, .seconds_per_byte = 4e-11}),
                          .device = device,
                          .overhead_s = 3e-7});
  }
  static constexpr DeviceCost usual{.seconds_per_byte = 1e-12, .seconds_per_operation = 5e-14, .launch_s = 5e-6};
};

TEST_F(SimulatedPass, ByKernelsComputationAndExchangeFollowEachOther) {
  const PassComparison pass = simulate(1024, 64);
  EXPECT_NEAR(pass.by_kernels.forward_s, pass.pooling_s + pass.exchange_s + 2 * usual.launch_s, 1e-9);
  EXPECT_NEAR(pass.by_kernels.backward_s,
              std::max(pass.scattering_s + pass.exchange_s + 2 * usual.launch_s,
                       pass.exchange_s + pass.all_reduce_s + usual.launch_s),
              1e-9);
}

// With tables so few that the network's all-reduce bounds the backward direction there is nothing to gain in it.
TEST_F(SimulatedPass, FusedItIsBetweenItsPartsAndTheirSum) {
  for (const std::int64_t tables : {64, 128}) {
    const PassComparison pass = simulate(2048, tables);
    EXPECT_GE(pass.fused.forward_s, std::max(pass.pooling_s, pass.exchange_s)) << tables;
    EXPECT_LT(pass.fused.forward_s, pass.by_kernels.forward_s) << tables;
    EXPECT_GE(pass.fused.backward_s, std::max(pass.scattering_s, pass.exchange_s)) << tables;
    EXPECT_LT(pass.fused.backward_s, pass.by_kernels.backward_s) << tables;
  }
}

TEST_F(SimulatedPass, WhereTheDeviceIsSlowThereIsNothingToHide) {
  const PassComparison pass = simulate(1024, 16, {.seconds_per_byte = 1e-9, .seconds_per_operation = 5e-14});
  EXPECT_GT(pass.fused.total_s / pass.by_kernels.total_s, 0.98);
}

TEST_F(SimulatedPass, ThePapersModelTakesAFifthLess) {
  for (const std::int64_t batch : {2048, 4096}) {
    const PassComparison pass = simulate(batch, 64);
    const double less = 1 - pass.fused.total_s / pass.by_kernels.total_s;
    EXPECT_GT(less, 0.21) << batch;
    EXPECT_LT(less, 0.40) << batch;
  }
}

}  // namespace
}  // namespace plait::fused
