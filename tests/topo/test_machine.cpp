#include <gtest/gtest.h>
#include <hwloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "topo/discovery.h"

namespace plait::topo {
namespace {

using Kind = TopologySource::Kind;

// "Machine(Package(NUMANode(L3(Core(PU PU)))))".
std::string shape(const MachineObject& object) {
  std::string text = object.type;
  if (object.children.empty()) return text;
  text += '(';
  for (const auto& child : object.children) text += (&child == object.children.data() ? "" : " ") + shape(child);
  return text + ')';
}

MachineTopology load(Kind kind, const std::string& text) {
  auto machine = load_machine({kind, text});
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? *machine : MachineTopology();
}

std::string data(const std::string& name) { return std::string(PLAIT_TEST_DATA) + "/" + name; }

TEST(Machine, Synthetic) {
  const auto machine = load(Kind::synthetic, "package:2 numa:2 l3:1 core:8 pu:2");
  EXPECT_EQ(machine.packages, 2);
  EXPECT_EQ(machine.numa_nodes, 4);
  EXPECT_EQ(machine.l3_caches, 4);
  EXPECT_EQ(machine.cores, 32);
  EXPECT_EQ(machine.processing_units, 64);
}

TEST(Machine, NumaNodesContainTheirProcessors) {
  EXPECT_EQ(shape(load(Kind::synthetic, "package:1 numa:2 core:1 pu:1").root),
            "Machine(Package(NUMANode(Core(PU)) NUMANode(Core(PU))))");
  EXPECT_EQ(shape(load(Kind::synthetic, "package:1 numa:1 l3:1 core:1 pu:2").root),
            "Machine(Package(NUMANode(L3(Core(PU PU)))))");
  EXPECT_EQ(shape(load(Kind::synthetic, "numa:2 core:1 pu:1").root), "Machine(NUMANode(Core(PU)) NUMANode(Core(PU)))");
  EXPECT_EQ(shape(load(Kind::synthetic, "package:1 numa:2 l3:1 core:1 pu:1").root),
            "Machine(Package(NUMANode(L3(Core(PU))) NUMANode(L3(Core(PU)))))");
}

TEST(Machine, RecordedTwoPackages) {
  const auto machine = load(Kind::xml_file, data("two_packages.xml"));
  EXPECT_EQ(machine.l3_caches, 8);
  EXPECT_EQ(machine.root.bytes, std::size_t{256} << 30);
  const MachineObject& numa = machine.root.children.at(1).children.at(0);
  EXPECT_EQ(numa.type, "NUMANode");
  EXPECT_EQ(numa.index, 2);
  EXPECT_EQ(numa.bytes, std::size_t{64} << 30);
  EXPECT_EQ(numa.children.at(0).bytes, std::size_t{32} << 20);
}

TEST(Machine, RecordedIrregular) {
  const auto machine = load(Kind::xml_file, data("irregular.xml"));
  EXPECT_EQ(shape(machine.root),
            "Machine(NUMANode(Package(L3(Core(PU) Core(PU) Core(PU) Core(PU))) Package(L3(Core(PU) Core(PU)))))");
}

TEST(Machine, RecordedFastMemoryStandsBesideItsProcessors) {
  const auto machine = load(Kind::xml_file, data("fast_memory.xml"));
  EXPECT_EQ(shape(machine.root),
            "Machine(Package(NUMANode(Core(PU) Core(PU)) NUMANode) Package(NUMANode(Core(PU) Core(PU)) NUMANode))");
}

TEST(Machine, ThisMachine) {
  const auto machine = load(Kind::this_machine, "");
  EXPECT_EQ(machine.root.type, "Machine");
  EXPECT_GE(machine.processing_units, 1);
}

TEST(Machine, AnExportedMachineReadsBackAlike) {
  std::string pattern = (std::filesystem::temp_directory_path() / "plait-xml-XXXXXX").string();
  const int file = mkstemp(pattern.data());
  ASSERT_GE(file, 0);
  close(file);
  const char* description = "package:2 l3:2 core:3 pu:1";
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_set_synthetic(topology, description);
  hwloc_topology_load(topology);
  hwloc_topology_export_xml(topology, pattern.c_str(), 0);
  hwloc_topology_destroy(topology);
  EXPECT_EQ(shape(load(Kind::xml_file, pattern).root), shape(load(Kind::synthetic, description).root));
  std::filesystem::remove(pattern);
}

// ---- Bad input ----

void expect_refused(const TopologySource& source, const std::string& expected) {
  const auto machine = load_machine(source);
  ASSERT_FALSE(machine.ok()) << source.text;
  EXPECT_EQ(machine.status().code(), Code::invalid);
  EXPECT_NE(machine.status().message().find(expected), std::string::npos) << machine.status().message();
}

TEST(MachineBadInput, Synthetic) {
  for (const char* text : {"foo", "", "core:0", "package:-1", "pu:2 core:2", ":::", "(", "[numa"}) {
    expect_refused({Kind::synthetic, text}, "synthetic description; expected one such as");
  }
}

TEST(MachineBadInput, SyntheticTooLarge) {
  expect_refused({Kind::synthetic, "package:4096 core:4096 pu:1"}, "expected at most 4096");
  expect_refused({Kind::synthetic, "core:4294967297 pu:1"}, "expected at most 4096");
  expect_refused({Kind::synthetic, "64 64 64"}, "expected at most 4096");
}

TEST(MachineBadInput, Xml) {
  expect_refused({Kind::xml_file, "/nonexistent/machine.xml"}, "No such file or directory");
  expect_refused({Kind::xml_file, std::string(PLAIT_TEST_DATA)}, "is a directory");
  expect_refused({Kind::xml_file, __FILE__}, "XML file");
  expect_refused({Kind::xml_file, ""}, "cannot read");
}

TEST(MachineBadInput, TruncatedXml) {
  std::ifstream whole(data("fast_memory.xml"));
  const std::string text((std::istreambuf_iterator<char>(whole)), {});
  const auto path = std::filesystem::temp_directory_path() / ("plait-truncated-" + std::to_string(getpid()) + ".xml");
  for (const std::size_t bytes : {std::size_t{0}, text.size() / 3, text.size() / 2, text.size() - 20}) {
    std::ofstream(path) << text.substr(0, bytes);
    expect_refused({Kind::xml_file, path.string()}, "hwloc XML file");
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plait::topo
