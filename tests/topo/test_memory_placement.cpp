#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "topo/detail/memory_placement.h"

namespace plait::topo {
namespace {

struct Bound {
  const std::byte* begin;
  std::size_t bytes;
  std::string nodes;
};

std::string text(hwloc_const_nodeset_t nodes) {
  char buffer[64] = "";
  hwloc_bitmap_list_snprintf(buffer, sizeof buffer, nodes);
  return buffer;
}

std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

TEST(PlaceMemory, EachRangeIsBoundToItsNode) {
  const auto topology = detail::load_topology({TopologySource::Kind::synthetic, "package:2 numa:2 core:2 pu:1"});
  ASSERT_TRUE(topology.ok());
  const std::vector<PlacedRange> ranges = {
      {at(0x10000), 4096, 3}, {at(0x20000), 8192, 0}, {at(0x30000), 4096, -1}, {at(0x40000), 0, 1}};
  std::vector<Bound> bound;
  const Status status = detail::place_memory(topology->get(), ranges, [&](const PlacedRange& range, auto nodes) {
    bound.push_back({range.begin, range.bytes, text(nodes)});
    return 0;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(bound.size(), 2u);
  EXPECT_EQ(bound[0].begin, at(0x10000));
  EXPECT_EQ(bound[0].bytes, 4096u);
  EXPECT_EQ(bound[0].nodes, "3");
  EXPECT_EQ(bound[1].begin, at(0x20000));
  EXPECT_EQ(bound[1].bytes, 8192u);
  EXPECT_EQ(bound[1].nodes, "0");
}

TEST(PlaceMemory, AFailureIsNamedAndTheOthersArePlaced) {
  const auto topology = detail::load_topology({TopologySource::Kind::synthetic, "numa:2 pu:1"});
  ASSERT_TRUE(topology.ok());
  const std::vector<PlacedRange> ranges = {{at(0x10000), 4096, 1}, {at(0x20000), 4096, 7}, {at(0x30000), 4096, 0}};
  int calls = 0;
  const Status status = detail::place_memory(topology->get(), ranges, [&](const PlacedRange&, auto) {
    errno = EPERM;
    return calls++ == 0 ? -1 : 0;
  });
  EXPECT_EQ(status.message(), "placing memory on NUMA node 1: Operation not permitted");
  EXPECT_EQ(calls, 2);
  const Status absent = detail::place_memory(topology->get(), {&ranges[1], 1}, [](const auto&, auto) { return 0; });
  EXPECT_EQ(absent.message(), "this machine has no NUMA node 7");
}

// Another mapping of the same file, as another process has it, finds what was asked for.
TEST(PlaceMemory, AFileInMemoryKeepsItsPlaces) {
  constexpr std::size_t bytes = 1 << 16;
  const int file = memfd_create("placed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  void* here = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* there = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(here, MAP_FAILED);
  ASSERT_NE(there, MAP_FAILED);
  const PlacedRange range{static_cast<std::byte*>(here), bytes, 0};
  const Status status = place_memory({&range, 1});
  if (!status.ok()) GTEST_SKIP() << status.message();
  const auto topology = detail::load_topology({});
  ASSERT_TRUE(topology.ok());
  detail::Bitmap nodes(hwloc_bitmap_alloc());
  hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
  ASSERT_EQ(hwloc_get_area_membind(topology->get(), there, bytes, nodes.get(), &policy, HWLOC_MEMBIND_BYNODESET), 0);
  EXPECT_EQ(policy, HWLOC_MEMBIND_BIND);
  EXPECT_EQ(text(nodes.get()), text(hwloc_get_obj_by_type(topology->get(), HWLOC_OBJ_NUMANODE, 0)->nodeset));
  munmap(here, bytes);
  munmap(there, bytes);
  close(file);
}

}  // namespace
}  // namespace plait::topo
