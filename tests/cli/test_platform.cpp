// The machines of plait simulate collective: what is read of SimGrid's files, and the least times that follow.
#include <gtest/gtest.h>

#include <string>

#include "core/file.h"
#include "tuner/text/platform.h"

namespace plait::tuner {
namespace {

std::string cluster(const std::string& topology) {
  return "<platform version=\"4.1\"><cluster id=\"lab\" prefix=\"n\" suffix=\".lab\" radical=\"2-65\" speed=\"1Gf\" "
         "bw=\"10GBps\" lat=\"100ns\" loopback_bw=\"20GBps\" loopback_lat=\"50ns\" " +
         topology + "/></platform>";
}

Platform shipped(const std::string& name) {
  const Result<std::string> text = read_file(std::string(PLAIT_PLATFORMS) + "/" + name + ".xml", std::size_t{1} << 20);
  const Result<Platform> platform = text.ok() ? read_platform(*text) : text.status();
  EXPECT_TRUE(platform.ok()) << platform.status().message();
  return platform.ok() ? *platform : Platform();
}

TEST(Platform, ReadsWhatPlaitShips) {
  const Platform tree = shipped("fat-tree"), dragonfly = shipped("dragonfly"), torus = shipped("torus");
  EXPECT_EQ(tree.topology, Topology::fat_tree);
  EXPECT_EQ(tree.nodes, 4096);
  EXPECT_EQ(tree.group, 32);
  EXPECT_DOUBLE_EQ(tree.group_rate, 16 * tree.link_rate);  // half of what its nodes can send
  EXPECT_EQ(dragonfly.topology, Topology::dragonfly);
  EXPECT_EQ(dragonfly.nodes, 4096);
  EXPECT_EQ(dragonfly.group, 128);
  EXPECT_DOUBLE_EQ(dragonfly.group_rate, 31 * 4 * dragonfly.link_rate);
  EXPECT_DOUBLE_EQ(dragonfly.group_latency_s, 3 * dragonfly.link_latency_s);
  EXPECT_EQ(torus.topology, Topology::torus);
  EXPECT_EQ(torus.nodes, 4096);
  EXPECT_EQ(torus.group, 16);
}

TEST(Platform, ReadsNamesAndUnits) {
  const Result<Platform> platform = read_platform(cluster("topology=\"FAT_TREE\" topo_parameters=\"2;8,8;1,4;1,1\""));
  ASSERT_TRUE(platform.ok()) << platform.status().message();
  EXPECT_EQ(platform->nodes, 64);
  EXPECT_EQ(platform->node_name(0), "n2.lab");
  EXPECT_EQ(platform->node_name(63), "n65.lab");
  EXPECT_DOUBLE_EQ(platform->link_rate, 10e9);
  EXPECT_DOUBLE_EQ(platform->near_latency_s, 50e-9);
  EXPECT_EQ(platform->group, 8);
}

TEST(Platform, SaysWhatIsWrong) {
  const auto wrong = [](const std::string& text) {
    const Result<Platform> platform = read_platform(text);
    return platform.ok() ? "nothing" : platform.status().message();
  };
  EXPECT_NE(wrong("").find("expected a file with one <cluster>"), std::string::npos);
  EXPECT_NE(wrong(cluster("") + cluster("")).find("more than one"), std::string::npos);
  EXPECT_NE(wrong(cluster("topology=\"HYPERCUBE\"")).find("expected FAT_TREE"), std::string::npos);
  EXPECT_NE(wrong(cluster("topology=\"FAT_TREE\" topo_parameters=\"3;4,4,4;1,4,4;1,1,1\"")).find("two levels"),
            std::string::npos);
  // SimGrid 3.32 ends in the middle of a route of such a one.
  EXPECT_NE(wrong(cluster("topology=\"DRAGONFLY\" topo_parameters=\"65,1;4,1;16,1;1\"")).find("no more groups"),
            std::string::npos);
  EXPECT_NE(wrong(cluster("topology=\"TORUS\" topo_parameters=\"4,-4,4\"")).find("positive"), std::string::npos);
}

// A card that all must pass through, then links of groups that are the narrower way.
TEST(Platform, LeavesCollectivesALeastTime) {
  Platform platform = shipped("fat-tree");
  const double rate = platform.link_rate;
  const PlatformJob within{.nodes = 32, .ranks_per_node = 4}, across{.nodes = 64, .ranks_per_node = 4};
  EXPECT_DOUBLE_EQ(least_seconds(Collective::allreduce, 1 << 20, within, platform), 2.0 * 31 / 32 * (1 << 20) / rate);
  EXPECT_DOUBLE_EQ(least_seconds(Collective::bcast, 1 << 20, within, platform), (1 << 20) / rate);
  EXPECT_DOUBLE_EQ(least_seconds(Collective::allgather, 1 << 20, within, platform), 31.0 / 32 * (1 << 20) / rate);
  EXPECT_DOUBLE_EQ(least_seconds(Collective::alltoall, 8, within, platform), 16.0 * 31 * 8 / rate);
  // 128 ranks of a group have as many others, over half of their cards' rate.
  EXPECT_DOUBLE_EQ(least_seconds(Collective::alltoall, 8, across, platform), 128.0 * 128 * 8 / (16 * rate));
}

TEST(Platform, ItsMachineHasALevelForGroups) {
  const Platform platform = shipped("dragonfly");
  const Machine machine = machine_of(platform);
  ASSERT_EQ(machine.levels.size(), 3u);
  EXPECT_EQ(machine.levels[0].name, "switch");
  EXPECT_TRUE(machine.levels[0].network);
  EXPECT_GT(machine.levels[0].latency, machine.levels[1].latency);
  EXPECT_GT(machine.levels.front().overhead, machine.levels.back().overhead);
  EXPECT_FALSE(machine.levels[2].network);
}

// Of a torus' row of 16 the messages to the eighth node share each link with seven others, and of those between rows
// each goes one of four ways; a switch of a dragonfly has four nodes and a link to each other one.
TEST(Platform, KnowsWhatMeetsOnTheWay) {
  const Machine torus = machine_of(shipped("torus")), dragonfly = machine_of(shipped("dragonfly"));
  const Machine tree = machine_of(shipped("fat-tree"));
  const auto met = [](const Machine& machine, std::size_t level, int distance, int children) {
    return machine.levels[level].meeting.at(distance, children);
  };
  EXPECT_DOUBLE_EQ(met(torus, 1, 1, 16), 1);
  EXPECT_DOUBLE_EQ(met(torus, 1, 8, 16), 8);
  EXPECT_DOUBLE_EQ(met(torus, 1, 15, 16), 1);
  EXPECT_DOUBLE_EQ(met(torus, 0, 8, 256), 4 * 8);
  EXPECT_DOUBLE_EQ(met(torus, 0, 64, 256), 4 * 4);  // in the third dimension
  EXPECT_DOUBLE_EQ(met(dragonfly, 1, 2, 128), 1);
  EXPECT_DOUBLE_EQ(met(dragonfly, 1, 4, 128), 4);
  EXPECT_DOUBLE_EQ(met(dragonfly, 0, 1, 32), 31);
  for (const std::size_t level : {0, 1, 2}) EXPECT_EQ(tree.levels[level].meeting, plan::Meeting());
  EXPECT_DOUBLE_EQ(torus.levels[1].meeting.of_all(16), 16.0 * 16 / (8 * 15));
  EXPECT_DOUBLE_EQ(torus.levels[1].meeting.of_all(4), 4.0 * 4 / (4 * 3));  // no way round
  EXPECT_DOUBLE_EQ(torus.levels[1].meeting.of_all(1), 1);
  EXPECT_DOUBLE_EQ(dragonfly.levels[1].meeting.of_all(128), 1);
}

TEST(Platform, ItsMachineIsAFile) {
  for (const char* name : {"fat-tree", "dragonfly", "torus"}) {
    const Machine machine = machine_of(shipped(name));
    const Result<Machine> read = plan::parse_machine(plan::machine_json(machine));
    ASSERT_TRUE(read.ok()) << read.status().message();
    for (std::size_t level = 0; level < machine.levels.size(); ++level)
      EXPECT_EQ(read->levels[level].meeting, machine.levels[level].meeting) << name;
  }
  std::string text = plan::machine_json(machine_of(shipped("dragonfly")));
  text.replace(text.find("\"near\""), 6, "\"nigh\"");
  EXPECT_NE(plan::parse_machine(text).status().message().find("levels[1].meeting.\"nigh\""), std::string::npos)
      << plan::parse_machine(text).status().message();
}

// Names as SimGrid 3.32 gives them.
TEST(Platform, KnowsTheLinksThatNodesShare) {
  using enum Topology;
  EXPECT_TRUE(is_global_link("link_from_8191_8051_4108_UP", fat_tree, 4096));
  EXPECT_FALSE(is_global_link("link_from_300_8182_300_DOWN", fat_tree, 4096));
  EXPECT_FALSE(is_global_link("fat-tree_link_5000_loopback", fat_tree, 4096));
  EXPECT_TRUE(is_global_link("blue_link_between_group_0_and_4_routers_4_and_256_41603_UP", dragonfly, 4160));
  EXPECT_FALSE(is_global_link("black_link_in_group_4_between_chassis_0_and_2_blade_0_35760_DOWN", dragonfly, 4160));
  EXPECT_FALSE(is_global_link("local_link_from_router_0_to_node_0_0_UP", dragonfly, 4160));
  EXPECT_TRUE(is_global_link("torus_link_from_12_to_28_UP", torus, 4096));
  EXPECT_FALSE(is_global_link("torus_link_12_loopback", torus, 4096));
  EXPECT_FALSE(is_global_link("link_from_8191_8051_4108_UP", flat, 4096));
}

TEST(Platform, TopologiesHaveNames) {
  for (const Topology topology : {Topology::flat, Topology::fat_tree, Topology::dragonfly, Topology::torus})
    EXPECT_EQ(topology_named(name(topology)), topology);
  EXPECT_FALSE(topology_named("hypercube").has_value());
}

}  // namespace
}  // namespace plait::tuner
