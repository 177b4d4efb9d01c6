#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/text/topo_report.h"

namespace plait::topo {
namespace {

MachineTopology machine(TopologySource::Kind kind, const std::string& text) {
  auto loaded = load_machine({kind, text});
  EXPECT_TRUE(loaded.ok());
  return *loaded;
}

TEST(TopoReport, ARegularMachineIsOneLineALevel) {
  EXPECT_EQ(tuner::machine_text(machine(TopologySource::Kind::synthetic, "package:2 numa:2 l3:1 core:8 pu:2")),
            "Machine, 4 GiB: 2 packages, 4 NUMA nodes, 4 L3 caches, 32 cores, 64 processing units\n"
            "  2 x Package 0-1\n"
            "    2 x NUMANode, 1 GiB\n"
            "      L3, 16 MiB\n"
            "        8 x Core, 2 PU each\n");
}

TEST(TopoReport, WhatDiffersHasALineOfItsOwn) {
  EXPECT_EQ(tuner::machine_text(machine(TopologySource::Kind::xml_file, PLAIT_TEST_DATA "/irregular.xml")),
            "Machine, 1 GiB: 2 packages, 1 NUMA node, 2 L3 caches, 6 cores, 6 processing units\n"
            "  NUMANode 0, 1 GiB\n"
            "    Package 0\n"
            "      L3 0, 16 MiB\n"
            "        4 x Core 0-3, 1 PU each\n"
            "    Package 1\n"
            "      L3 1, 16 MiB\n"
            "        2 x Core 4-5, 1 PU each\n");
}

TEST(TopoReport, MemoryThatDiffersALittleIsAlike) {
  MachineTopology two = machine(TopologySource::Kind::synthetic, "package:2 numa:1(memory=64GiB) core:2 pu:1");
  two.root.children.at(1).children.at(0).bytes -= std::size_t{1} << 30;
  EXPECT_NE(tuner::machine_text(two).find("2 x Package 0-1"), std::string::npos);
  two.root.children.at(1).children.at(0).bytes -= std::size_t{8} << 30;
  EXPECT_EQ(tuner::machine_text(two).find("2 x Package"), std::string::npos);
}

TEST(TopoReport, MachineJson) {
  const auto json = tuner::machine_json(machine(TopologySource::Kind::synthetic, "package:1 core:2 pu:1"));
  EXPECT_EQ(json.at("cores"), 2);
  EXPECT_EQ(json.at("tree").at("type"), "Machine");
}

VerbsPort fake_port(bool active) {
  VerbsPort port;
  port.device = "mlx5_0";
  port.active = active;
  port.state = active ? "active" : "down";
  if (active) {
    port.bytes_per_second = 25e9;
    port.lid = 12;
    port.gid = "fe80::1";
    port.numa = 1;
  }
  return port;
}

TEST(TopoReport, Ports) {
  EXPECT_EQ(tuner::hcas_text(std::vector<VerbsPort>{fake_port(true), fake_port(false)}),
            "HCA mlx5_0 port 1: active, InfiniBand, 25 GB/s, LID 12, GID fe80::1, NUMA node 1\n"
            "HCA mlx5_0 port 1: down, InfiniBand\n");
  const auto json = tuner::hcas_json(std::vector<VerbsPort>{fake_port(true), fake_port(false)});
  EXPECT_EQ(json.at("ports").size(), 2u);
  EXPECT_EQ(json.at("ports")[0].at("bytes_per_second"), 25e9);
  EXPECT_TRUE(json.at("ports")[1].at("numa").is_null());
  EXPECT_TRUE(json.at("reason").is_null());
}

TEST(TopoReport, NoPort) {
  EXPECT_EQ(tuner::hcas_text(std::vector<VerbsPort>{}), "no HCA found (libibverbs: it lists no device)\n");
  const Status missing(Code::unavailable, "not installed");
  EXPECT_EQ(tuner::hcas_text(missing), "no HCA found (libibverbs: not installed)\n");
  EXPECT_EQ(tuner::hcas_json(missing).at("reason"), "not installed");
}

TEST(TopoReport, Ranges) {
  EXPECT_EQ(tuner::ranges_text(std::vector<int>{}), "");
  EXPECT_EQ(tuner::ranges_text(std::vector<int>{5}), "5");
  EXPECT_EQ(tuner::ranges_text(std::vector<int>{0, 1, 3, 4, 5, 9, 8}), "0 1 3-5 9 8");
}

std::vector<Location> by_node(int nodes, int ranks) {
  std::vector<Location> locations(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    Location& location = locations[static_cast<std::size_t>(rank)];
    location.host.low = static_cast<std::uint64_t>(rank % nodes);
    location.package = location.numa = location.l3 = 0;
    location.core = rank / nodes;
    std::strcpy(location.hostname, rank % nodes == 0 ? "alpha" : "beta");
  }
  return locations;
}

TEST(TopoReport, Job) {
  const auto locations = by_node(2, 4);
  EXPECT_EQ(tuner::job_text(Hierarchy::from_locations(locations), locations),
            "job: 4 ranks on 2 nodes, hierarchy [2 node, 2 core], uniform\n"
            "vrank order: ranks 0 2 1 3\n"
            "node 0, host alpha: ranks 0 2\n"
            "  rank 0 at vrank 0: package 0, NUMA node 0, L3 0, core 0\n"
            "  rank 2 at vrank 1: package 0, NUMA node 0, L3 0, core 1\n"
            "node 1, host beta: ranks 1 3\n"
            "  rank 1 at vrank 2: package 0, NUMA node 0, L3 0, core 0\n"
            "  rank 3 at vrank 3: package 0, NUMA node 0, L3 0, core 1\n");
}

TEST(TopoReport, JobJson) {
  auto locations = by_node(2, 4);
  locations[3].core = -1;
  const auto json = tuner::job_json(Hierarchy::from_locations(locations), locations);
  EXPECT_EQ(json.at("vrank_order"), nlohmann::ordered_json({0, 2, 1, 3}));
  EXPECT_EQ(json.at("uniform"), false);
  EXPECT_EQ(json.at("levels")[0].at("cardinality"), 2);
  EXPECT_TRUE(json.at("levels")[1].at("cardinality").is_null());
  EXPECT_EQ(json.at("nodes")[1].at("hostname"), "beta");
  EXPECT_TRUE(json.at("locations")[3].at("core").is_null());
}

TEST(TopoReport, Bindings) {
  EXPECT_EQ(tuner::binding_text(Location()), "not bound");
  Location location;
  location.package = 1;
  EXPECT_EQ(tuner::binding_text(location), "package 1, not bound to one core");
}

}  // namespace
}  // namespace plait::topo
