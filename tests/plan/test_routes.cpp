// Which channel connects a pair, and what can be done over it.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "plan/model/builder.h"
#include "plan/model/routes.h"
#include "topo/hierarchy_print.h"

namespace plait::plan {
namespace {

std::string key(const Routes& routes) {
  std::string bytes;
  routes.append_key(bytes);
  return bytes;
}

TEST(Channels, HaveTheNamesThatTheUserKnows) {
  EXPECT_EQ(all_channel_names, "shm,tcp,ucx,mpi,cuda");
  EXPECT_EQ(channel_named("tcp"), ChannelKind::tcp);
  EXPECT_FALSE(channel_named("rdma").has_value());
  ChannelSet used;
  used.add(ChannelKind::mpi);
  used.add(ChannelKind::shm);
  EXPECT_EQ(names(used), "shm,mpi");
  used.remove(ChannelKind::mpi);
  EXPECT_FALSE(used.any(&ChannelTraits::needs_host));
  EXPECT_EQ(names({}), "");
}

TEST(Routes, AreTheNodesAndTheNetworks) {
  const std::vector<int> node_of = {0, 1, 0, 1};
  const Routes routes = routes_by_node(node_of, ChannelKind::shm, ChannelKind::tcp);
  EXPECT_EQ(routes.between(0, 2), ChannelKind::shm);
  EXPECT_EQ(routes.between(3, 1), ChannelKind::shm);
  EXPECT_EQ(routes.between(0, 1), ChannelKind::tcp);
  EXPECT_EQ(routes.beyond(), ChannelKind::tcp);
  EXPECT_EQ(names(routes.kinds()), "shm,tcp");
  EXPECT_EQ(routes.shared_memory(), ChannelKind::shm);
  EXPECT_FALSE(routes.need_host());
  EXPECT_TRUE(usual_routes(Hierarchy::nodes_of(std::vector<int>{2, 2})).need_host());
}

TEST(Routes, OfOneChannelHaveNoNodes) {
  const Routes network(ChannelKind::ucx);
  EXPECT_EQ(network.between(0, 1), ChannelKind::ucx);
  EXPECT_FALSE(network.shared_memory().has_value());
  EXPECT_TRUE(Routes(ChannelKind::shm).shared_memory().has_value());
}

// What comes to a node later: links between some of its ranks.
TEST(Routes, TakeTheNearestThatConnectsAPair) {
  Routes routes(ChannelKind::mpi);
  routes.connect(std::array{0, 0, -1, -1, -1}, ChannelKind::ucx);
  routes.connect(std::array{0, 0, 0, 0, 1}, ChannelKind::shm);
  EXPECT_EQ(routes.between(0, 1), ChannelKind::ucx);
  EXPECT_EQ(routes.between(1, 2), ChannelKind::shm);
  EXPECT_EQ(routes.between(2, 3), ChannelKind::shm);
  EXPECT_EQ(routes.between(3, 4), ChannelKind::mpi);
}

TEST(Routes, AreToldApart) {
  const std::vector<int> pairs = {0, 0, 1, 1}, halves = {0, 1, 0, 1};
  const Routes routes = routes_by_node(pairs, ChannelKind::shm, ChannelKind::tcp);
  EXPECT_EQ(key(routes), key(routes_by_node(pairs, ChannelKind::shm, ChannelKind::tcp)));
  EXPECT_NE(key(routes), key(routes_by_node(pairs, ChannelKind::shm, ChannelKind::ucx)));
  EXPECT_NE(key(routes), key(routes_by_node(halves, ChannelKind::shm, ChannelKind::tcp)));
  EXPECT_NE(key(routes), key(Routes(ChannelKind::tcp)));
}

// A rank of many need not look at all of them to know which plans are its own.
TEST(Routes, OfNodesAreToldApartByTheHierarchysHash) {
  const Hierarchy pairs = Hierarchy::nodes_of(std::vector<int>{2, 2}),
                  uneven = Hierarchy::nodes_of(std::vector<int>{1, 3});
  const auto print = std::as_bytes(topo::print_of(pairs));
  const std::string hash(reinterpret_cast<const char*>(print.data()), print.size());
  EXPECT_NE(key(usual_routes(pairs)).find(hash), std::string::npos);
  EXPECT_EQ(key(usual_routes(pairs)), key(usual_routes(Hierarchy::nodes_of(std::vector<int>{2, 2}))));
  EXPECT_NE(key(usual_routes(pairs)), key(usual_routes(uneven)));
}

// Chunks are bound to rails where the channel has some, and on no other.
TEST(Routes, SayWhichMessagesAreBoundToRails) {
  for (const ChannelKind beyond : {ChannelKind::tcp, ChannelKind::ucx, ChannelKind::mpi}) {
    const std::vector<int> node_of = {0, 0, 1};
    Builder builder(Semantics(Collective::bcast, 3, 0, 1, 1), routes_by_node(node_of, ChannelKind::shm, beyond));
    const std::vector<std::int8_t> rails = {0};
    builder.bind_chunks(rails);
    const std::vector<BlockId> all = {0};
    builder.move(0, 1, all);
    builder.move(0, 2, all);
    const auto plan = builder.finish();
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    for (const Step& step : plan->schedules[0].steps) {
      if (step.kind != StepKind::send) continue;
      EXPECT_EQ(step.channel, step.peer == 1 ? ChannelKind::shm : beyond);
      EXPECT_EQ(step.rail, step.peer == 2 && beyond != ChannelKind::mpi ? 0 : any_rail);
    }
  }
}

}  // namespace
}  // namespace plait::plan
