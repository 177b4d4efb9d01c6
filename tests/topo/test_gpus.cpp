// GPUs by a fake of NVML's functions, and where they are on machines that no machine here is (data/make_gpu_machines).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "topo/detail/nvml_functions.h"
#include "topo/hierarchy.h"
#include "tuner/text/gpu_report.h"

namespace plait::topo {
namespace {

using detail::NvmlDevice;
using detail::NvmlFunctions;

// ---- A fake NVML ----

struct FakeLink {
  bool up = true;
  int end = detail::nvml_end_switch;
  std::string peer = "00000000:07:00.0";
};

struct FakeGpu {
  std::string bus_id = "00000000:1B:00.0";
  std::vector<FakeLink> links = {};
  bool visible = true;
  unsigned megabytes_per_second = 26562;
};

// The C functions have no room for a context of their own: they find the fake here.
std::vector<FakeGpu>* fake_gpus = nullptr;
int fake_init_error = 0;

FakeGpu& fake_of(NvmlDevice device) { return fake_gpus->at(reinterpret_cast<std::uintptr_t>(device) - 1); }

int fake_pci_info(const std::string& bus_id, detail::NvmlPciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "%s", bus_id.c_str());
  return 0;
}

NvmlFunctions fake_nvml() {
  return {
      .init = [] { return fake_init_error; },
      .error_text = [](int) { return "Driver Not Loaded"; },
      .count = [](unsigned* count) { return *count = static_cast<unsigned>(fake_gpus->size()), 0; },
      .handle =
          [](unsigned index, NvmlDevice* device) {
            *device = reinterpret_cast<NvmlDevice>(std::uintptr_t{index} + 1);
            return fake_gpus->at(index).visible ? 0 : 4;
          },
      .name = [](NvmlDevice, char* name, unsigned length) { return std::snprintf(name, length, "Fake H100"), 0; },
      .uuid = [](NvmlDevice, char* uuid, unsigned length) { return std::snprintf(uuid, length, "GPU-12345678"), 0; },
      .pci = [](NvmlDevice device, detail::NvmlPciInfo* info) { return fake_pci_info(fake_of(device).bus_id, info); },
      .memory = [](NvmlDevice, detail::NvmlMemory* memory) { return memory->total = 80ull << 30, 0; },
      .link_state =
          [](NvmlDevice device, unsigned link, int* up) {
            const auto& links = fake_of(device).links;
            if (link >= links.size()) return 2;  // invalid argument
            return *up = links[link].up, 0;
          },
      .link_peer = [](NvmlDevice device, unsigned link,
                      detail::NvmlPciInfo* info) { return fake_pci_info(fake_of(device).links.at(link).peer, info); },
      .link_end = [](NvmlDevice device, unsigned link,
                     int* end) { return *end = fake_of(device).links.at(link).end, 0; },
      .fields =
          [](NvmlDevice device, int, detail::NvmlFieldValue* values) {
            EXPECT_EQ(values->field, detail::nvml_field_link_speed);
            values->result = 0;
            values->type = detail::nvml_type_unsigned;
            values->value.number = fake_of(device).megabytes_per_second;
            return 0;
          },
  };
}

class Nvml : public testing::Test {
 protected:
  void SetUp() override {
    fake_gpus = &gpus_;
    fake_init_error = 0;
  }
  std::vector<FakeGpu> gpus_;
};

TEST_F(Nvml, LinksToOneEndAreOne) {
  gpus_ = {{.links = {{},
                      {.up = false},
                      {},
                      {.peer = "00000000:08:00.0"},
                      {.end = detail::nvml_end_gpu, .peer = "00000000:43:00.0"}}}};
  const auto found = detail::list_gpus(fake_nvml());
  ASSERT_TRUE(found.ok());
  const GpuFacts& gpu = found->at(0);
  EXPECT_EQ(gpu.name, "Fake H100");
  EXPECT_EQ(gpu.uuid, "GPU-12345678");
  EXPECT_EQ(gpu.pci, "0000:1b:00.0");
  EXPECT_EQ(gpu.bytes, std::size_t{80} << 30);
  ASSERT_EQ(gpu.links.size(), 3u);
  EXPECT_EQ(gpu.links[0].end, GpuLink::End::link_switch);
  EXPECT_EQ(gpu.links[0].peer, "0000:07:00.0");
  EXPECT_EQ(gpu.links[0].links, 2);
  EXPECT_DOUBLE_EQ(gpu.links[0].bytes_per_second, 2 * 26.562e9);
  EXPECT_EQ(gpu.links[2].end, GpuLink::End::gpu);
}

TEST_F(Nvml, WhatMayNotBeSeenKeepsItsPlace) {
  gpus_ = {{.visible = false}, {.bus_id = "00000000:43:00.0"}};
  const auto found = detail::list_gpus(fake_nvml());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->at(0).pci, "");
  EXPECT_EQ(found->at(1).pci, "0000:43:00.0");
  EXPECT_EQ(own_gpu(*found, "1"), 1);
}

TEST_F(Nvml, SaysWhyThereIsNone) {
  fake_init_error = 9;
  const auto found = detail::list_gpus(fake_nvml());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(), "NVML cannot be initialised: Driver Not Loaded");
}

TEST_F(Nvml, OldDriversDoNotTellEnds) {
  gpus_ = {{.links = {{}}}};
  NvmlFunctions nvml = fake_nvml();
  nvml.link_end = nullptr;
  EXPECT_EQ(detail::list_gpus(nvml)->at(0).links.at(0).end, GpuLink::End::other);
}

TEST(PciAddress, IsWrittenAsHwlocDoes) {
  EXPECT_EQ(detail::pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(detail::pci_address("0001:AF:1f.7"), "0001:af:1f.7");
  EXPECT_EQ(detail::pci_address("FFFFFFFF:FF:FF.F"), "");
  EXPECT_EQ(detail::pci_address("none"), "");
  EXPECT_EQ(detail::pci_address(""), "");
}

// ---- Islands ----

GpuFacts linked(const std::string& pci, std::vector<GpuLink> links) {
  return {.name = "", .uuid = "", .pci = pci, .bytes = 0, .links = std::move(links)};
}
GpuLink to_gpu(const std::string& pci) { return {.end = GpuLink::End::gpu, .peer = pci}; }
GpuLink to_switch(const std::string& pci) { return {.end = GpuLink::End::link_switch, .peer = pci}; }

TEST(Islands, AreWhatLinksConnect) {
  // A chain a - c - b, a pair on one switch, and one without links.
  const std::vector<GpuFacts> gpus = {linked("a", {to_gpu("c")}), linked("s", {to_switch("x")}),
                                      linked("alone", {}),        linked("c", {to_gpu("a"), to_gpu("b")}),
                                      linked("b", {to_gpu("c")}), linked("t", {to_switch("x")})};
  EXPECT_EQ(islands_of(gpus), (std::vector<int>{0, 1, -1, 0, 0, 1}));
}

TEST(Islands, ALinkThatEndsElsewhereIsAnIslandOfOne) {
  EXPECT_EQ(islands_of(std::vector<GpuFacts>{linked("a", {to_gpu("hidden")}), linked("b", {to_gpu("hidden too")})}),
            (std::vector<int>{0, 1}));
  EXPECT_TRUE(islands_of({}).empty());
}

TEST(Islands, SwitchesWithoutNamesAreOneSystem) {
  EXPECT_EQ(islands_of(std::vector<GpuFacts>{linked("a", {to_switch("")}), linked("b", {to_switch("")})}),
            (std::vector<int>{0, 0}));
}

// ---- Machines ----

std::string data(const std::string& name) { return PLAIT_TEST_DATA "/" + name; }

GpuTopology machine(const std::string& name) {
  const auto gpus = tuner::read_gpus(data(name + ".gpus.json"));
  EXPECT_TRUE(gpus.ok()) << gpus.status().message();
  auto found = locate_gpus({TopologySource::Kind::xml_file, data(name + ".xml")}, *gpus);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return *found;
}

std::vector<std::string> nearest(const GpuTopology& found, int gpu) {
  std::vector<std::string> names;
  for (const int nic : nearest_nics(found.gpus.at(static_cast<std::size_t>(gpu))))
    names.push_back(found.nics.at(static_cast<std::size_t>(nic)).name);
  return names;
}

using Names = std::vector<std::string>;

TEST(GpuMachines, DgxH100) {
  const GpuTopology found = machine("dgx_h100");
  ASSERT_EQ(found.gpus.size(), 8u);
  ASSERT_EQ(found.nics.size(), 8u) << "an HCA has two names";
  ASSERT_EQ(found.islands.size(), 1u);
  EXPECT_EQ(found.islands[0].gpus.size(), 8u);
  EXPECT_EQ(found.islands[0].switches, 4);
  const Names expected = {"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"};
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(nearest(found, gpu), Names{expected[static_cast<std::size_t>(gpu)]}) << gpu;
    EXPECT_EQ(found.gpus[static_cast<std::size_t>(gpu)].numa, gpu / 4);
    EXPECT_EQ(found.gpus[static_cast<std::size_t>(gpu)].package, gpu / 4);
  }
  EXPECT_EQ(found.gpus[0].nics[0], Nearness::pcie_switch);
  EXPECT_EQ(found.gpus[0].nics[1], Nearness::numa);
  EXPECT_EQ(found.gpus[0].nics[7], Nearness::machine);
}

TEST(GpuMachines, FourOnPcie) {
  const GpuTopology found = machine("pcie4");
  EXPECT_TRUE(found.islands.empty());
  ASSERT_EQ(found.gpus.size(), 4u);
  for (const Gpu& gpu : found.gpus) EXPECT_EQ(gpu.island, -1);
  EXPECT_EQ(nearest(found, 0), Names{"mlx5_0"});
  EXPECT_EQ(found.gpus[0].nics[0], Nearness::pcie_switch);
  EXPECT_EQ(nearest(found, 2), Names{"mlx5_0"});
  EXPECT_EQ(found.gpus[2].nics[0], Nearness::host_bridge);
  EXPECT_EQ(nearest(found, 3), (Names{"mlx5_0", "eno1"})) << "both are on the other socket";
  EXPECT_EQ(found.gpus[3].numa, 1);
}

TEST(GpuMachines, TwoIslands) {
  const GpuTopology found = machine("islands2");
  ASSERT_EQ(found.islands.size(), 2u);
  EXPECT_EQ(found.islands[1].gpus, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(found.islands[1].switches, 0);
  EXPECT_EQ(nearest(found, 1), Names{"mlx5_0"});
  EXPECT_EQ(nearest(found, 6), Names{"mlx5_1"});
}

TEST(GpuMachines, RecordedVirtualMachine) {
  const GpuTopology found = machine("h200_vm");
  ASSERT_EQ(found.gpus.size(), 1u);
  EXPECT_TRUE(found.islands.empty());
  EXPECT_EQ(found.gpus[0].numa, 0);
  EXPECT_EQ(nearest(found, 0), Names{"eth0"});
  EXPECT_EQ(found.gpus[0].nics[0], Nearness::host_bridge);
}

TEST(GpuMachines, WithoutPciDevicesPlacesAreUnknown) {
  const auto gpus = tuner::read_gpus(data("dgx_h100.gpus.json"));
  const auto found = locate_gpus({TopologySource::Kind::synthetic, "package:2 core:4 pu:1"}, *gpus);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->nics.empty());
  EXPECT_EQ(found->gpus[0].numa, -1);
  EXPECT_EQ(found->gpus[0].island, 0) << "that needs no PCI device";
  EXPECT_TRUE(nearest_nics(found->gpus[0]).empty());
}

// ---- Levels ----

// A rank a GPU of the machine, in turn over so many nodes.
std::vector<Location> ranks_on(const std::string& name, int nodes) {
  const GpuTopology found = machine(name);
  std::vector<Location> locations;
  for (std::size_t gpu = 0; gpu < found.gpus.size(); ++gpu)
    for (int node = 0; node < nodes; ++node) {
      Location location;
      location.host.low = static_cast<std::uint64_t>(node);
      location.gpu = static_cast<int>(gpu);
      location.island = found.gpus[gpu].island;
      locations.push_back(location);
    }
  return locations;
}

TEST(GpuLevels, IslandsSplitANode) {
  EXPECT_EQ(Hierarchy::from_locations(ranks_on("islands2", 1)).describe(), "[2 island, 4 gpu]");
  EXPECT_EQ(Hierarchy::from_locations(ranks_on("islands2", 2)).describe(), "[2 node, 2 island, 4 gpu]");
}

TEST(GpuLevels, OneIslandIsNoLevel) {
  EXPECT_EQ(Hierarchy::from_locations(ranks_on("dgx_h100", 2)).describe(), "[2 node, 8 gpu]");
  EXPECT_EQ(Hierarchy::from_locations(ranks_on("pcie4", 1)).describe(), "[4 gpu]");
}

TEST(GpuLevels, ARankWithoutAGpuKeepsItsNodeWhole) {
  auto locations = ranks_on("islands2", 2);
  locations[0].island = locations[0].gpu = -1;
  EXPECT_EQ(Hierarchy::from_locations(locations).describe(),
            "[2 node, 1,2 island, 1,4,4 gpu, 8,1,1,1,1,1,1,1,.. rank]");
}

TEST(GpuLevels, ProcessorsTellRanksApartFirst) {
  auto locations = ranks_on("dgx_h100", 1);
  for (std::size_t rank = 0; rank < locations.size(); ++rank) {
    locations[rank].package = static_cast<int>(rank) / 4;
    locations[rank].core = static_cast<int>(rank);
  }
  EXPECT_EQ(Hierarchy::from_locations(locations).describe(), "[2 package, 4 core]");
}

TEST(GpuLevels, PlansHaveRoomForAllOfThem) {
  std::vector<Location> locations(256);
  for (int rank = 0; rank < 256; ++rank) {
    Location& location = locations[static_cast<std::size_t>(rank)];
    location.host.low = static_cast<std::uint64_t>(rank & 1);
    location.island = rank >> 1 & 1;
    location.package = rank >> 1 & 3;
    location.numa = rank >> 1 & 7;
    location.l3 = rank >> 1 & 15;
    location.core = rank >> 1 & 31;
    location.gpu = rank >> 1 & 63;
  }
  EXPECT_EQ(Hierarchy::from_locations(locations).describe(), "[2 node, 2 island, 2 package, 2 numa, 2 l3, 8 rank]");
}

TEST(GpuLevels, RanksOfOneGpu) {
  auto locations = ranks_on("pcie4", 1);
  locations.insert(locations.end(), locations.begin(), locations.end());
  EXPECT_EQ(Hierarchy::from_locations(locations).describe(), "[4 gpu, 2 rank]");
}

// ---- A process's own ----

TEST(OwnGpu, IsWhatTheEnvironmentNames) {
  const auto gpus = tuner::read_gpus(data("dgx_h100.gpus.json"));
  EXPECT_EQ(own_gpu(*gpus, ""), -1);
  EXPECT_EQ(own_gpu(*gpus, "3"), 3);
  EXPECT_EQ(own_gpu(*gpus, "8"), -1);
  EXPECT_EQ(own_gpu(*gpus, gpus->at(5).uuid), 5);
  EXPECT_EQ(own_gpu(*gpus, "GPU-"), -1) << "names none";
}

TEST(OwnGpu, IsThatOfTheContext) {
  void* driver = dlopen(PLAIT_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(driver, nullptr) << dlerror();
  EXPECT_EQ(detail::gpu_of_context(driver), "0000:a1:00.0") << "whatever number the process has for it";
  dlclose(driver);
}

TEST(OwnGpu, NoDriverNoContext) {
  EXPECT_FALSE(computes_on_gpu());
  EXPECT_EQ(detail::gpu_of_context(nullptr), "");
}

// ---- What is printed, and read again ----

TEST(GpuReport, Lines) {
  const std::string text = tuner::gpus_text(machine("dgx_h100"));
  EXPECT_NE(
      text.find(
          "GPU 7: NVIDIA H100 80GB HBM3, 80 GiB, 0000:df:00.0, NUMA node 1, 18 links to 4 switches, 478 GB/s, near "
          "mlx5_11 (by one PCIe switch)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("island 0: GPUs 0 1 2 3 4 5 6 7, through 4 switches\n"), std::string::npos) << text;
  const std::string islands = tuner::gpus_text(machine("islands2"));
  EXPECT_NE(islands.find(", 12 links to 3 GPUs, 319 GB/s, near mlx5_0 (by one host bridge)\n"), std::string::npos)
      << islands;
  EXPECT_NE(islands.find("island 1: GPUs 4 5 6 7, from GPU to GPU\n"), std::string::npos) << islands;
  EXPECT_NE(
      tuner::gpus_text(machine("pcie4"))
          .find("48 GiB, 0000:81:00.0, NUMA node 1, no links of its own, near mlx5_0 eno1 (across the machine)\n"),
      std::string::npos);
}

TEST(GpuReport, WhyThereIsNone) {
  EXPECT_EQ(tuner::gpus_text(GpuTopology()), "no GPU found (the driver's library lists none)\n");
  const Status missing(Code::unavailable, "not installed");
  EXPECT_EQ(tuner::gpus_text(missing), "no GPU found (not installed)\n");
  EXPECT_EQ(tuner::gpus_json(missing).at("reason"), "not installed");
}

TEST(GpuReport, WhatIsPrintedIsReadAgain) {
  const GpuTopology found = machine("islands2");
  char folder[] = "/tmp/plait-gpus-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/topo.json";
  std::ofstream(path) << nlohmann::ordered_json{{"nodes", {{{"gpus", tuner::gpus_json(found)}}}}}.dump();
  const auto again = tuner::read_gpus(path);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_EQ(again->size(), found.gpus.size());
  EXPECT_EQ(again->at(3).pci, found.gpus[3].facts.pci);
  ASSERT_EQ(again->at(3).links.size(), 3u);
  EXPECT_EQ(again->at(3).links[1].bytes_per_second, found.gpus[3].facts.links[1].bytes_per_second);
  EXPECT_EQ(islands_of(*again), islands_of(*tuner::read_gpus(data("islands2.gpus.json"))));
}

TEST(GpuReport, RefusesOtherFiles) {
  char folder[] = "/tmp/plait-gpus-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/x.json";
  for (
      const char* text :
      {"", "[]", "{}", R"({"devices":{}})", R"({"devices":[1]})", R"({"nodes":[]})", R"({"devices":[{"name":"a"}]})",
       R"({"devices":[{"name":"a","uuid":"","pci":"","bytes":-1,"links":[]}]})",
       R"({"devices":[{"name":"a","uuid":"","pci":"","bytes":1,"links":[{"end":"moon","peer":"","links":1,"bytes_per_second":1}]}]})",
       R"({"devices":[{"name":"a","uuid":"","pci":"","bytes":1,"links":[{"end":"gpu","peer":"","links":0,"bytes_per_second":1}]}]})"}) {
    std::ofstream(path) << text;
    const auto read = tuner::read_gpus(path);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.status().message().find("expected"), std::string::npos) << read.status().message();
  }
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(tuner::read_gpus("/nonexistent/x.json").ok());
}

}  // namespace
}  // namespace plait::topo
