#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "topo/detail/cpu_quota.h"
#include "topo/detail/hwloc_topology.h"
#include "topo/discovery.h"

namespace plait::topo {
namespace {

// ---- Where a binding lies, on machines that are not here ----

detail::Topology machine(TopologySource::Kind kind, const std::string& text) {
  auto topology = detail::load_topology({kind, text});
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return std::move(topology).value();
}

detail::Topology synthetic(const std::string& text) { return machine(TopologySource::Kind::synthetic, text); }

Location bound(const detail::Topology& topology, const char* processors) {
  detail::Bitmap binding(hwloc_bitmap_alloc());
  hwloc_bitmap_list_sscanf(binding.get(), processors);
  Location location;
  detail::locate(topology.get(), binding.get(), location);
  return location;
}

struct Expected {
  int package, numa, l3, core;
};

void expect_at(const Location& location, Expected expected) {
  EXPECT_EQ(location.package, expected.package);
  EXPECT_EQ(location.numa, expected.numa);
  EXPECT_EQ(location.l3, expected.l3);
  EXPECT_EQ(location.core, expected.core);
}

TEST(Locate, OneProcessingUnit) {
  const auto topology = synthetic("package:2 numa:2 l3:2 core:2 pu:2");
  expect_at(bound(topology, "31"), {1, 3, 7, 15});
}

TEST(Locate, EveryExtentOfABinding) {
  const auto topology = synthetic("package:2 numa:2 l3:2 core:2 pu:2");
  expect_at(bound(topology, "0-1"), {0, 0, 0, 0});
  expect_at(bound(topology, "0-3"), {0, 0, 0, -1});
  expect_at(bound(topology, "0-7"), {0, 0, -1, -1});
  expect_at(bound(topology, "0-15"), {0, -1, -1, -1});
  expect_at(bound(topology, "0-31"), {-1, -1, -1, -1});
  expect_at(bound(topology, "0,31"), {-1, -1, -1, -1});
}

TEST(Locate, NoProcessorOrOneThatTheMachineLacks) {
  const auto topology = synthetic("package:2 core:2 pu:1");
  expect_at(bound(topology, ""), {-1, -1, -1, -1});
  expect_at(bound(topology, "77"), {-1, -1, -1, -1});
}

TEST(Locate, WhatAMachineLacksStaysUnknown) {
  const auto topology = synthetic("core:4 pu:1");
  expect_at(bound(topology, "2"), {-1, 0, -1, 2});
}

TEST(Locate, IndicesAreLogical) {
  // The operating system numbers the two threads of core 0 as 0 and 4.
  const auto topology = synthetic("core:4 pu:2(indexes=4*2:1*4)");
  expect_at(bound(topology, "4"), {-1, 0, -1, 2});
  const auto usual = synthetic("package:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
  expect_at(bound(usual, "0,4"), {0, 0, -1, 0});
}

TEST(Locate, NumaNodesThatShareProcessors) {
  const auto topology = machine(TopologySource::Kind::xml_file, PLAIT_TEST_DATA "/fast_memory.xml");
  expect_at(bound(topology, "1"), {0, 0, -1, 1});
  expect_at(bound(topology, "2-3"), {1, 2, -1, -1});
  expect_at(bound(topology, "0-3"), {-1, -1, -1, -1});
}

TEST(Locate, MemoryOfTheWholeMachineIsNoPlace) {
  const auto topology = synthetic("[numa] package:2 [numa] core:2 pu:1");
  EXPECT_EQ(bound(topology, "0-3").numa, -1);
  EXPECT_GE(bound(topology, "0").numa, 0);
  EXPECT_NE(bound(topology, "0").numa, bound(topology, "2").numa);
}

TEST(Locate, NumaIndexOfTheOperatingSystem) {
  const auto topology = synthetic("numa:4(indexes=3,2,1,0) core:2 pu:1");
  EXPECT_EQ(detail::numa_logical_index(topology.get(), 3), 0);
  EXPECT_EQ(detail::numa_logical_index(topology.get(), 0), 3);
  EXPECT_EQ(detail::numa_logical_index(topology.get(), 9), -1);
  EXPECT_EQ(detail::numa_logical_index(topology.get(), -1), -1);
}

// ---- Control groups, on a file system made for the test ----

class CpuQuota : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "plait-quota-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr) << std::strerror(errno);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const auto file = root_.string() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  int processors() const { return detail::cgroup_processors(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(CpuQuota, NoControlGroups) { EXPECT_EQ(processors(), 0); }

TEST_F(CpuQuota, VersionTwo) {
  write("/proc/self/cgroup", "0::/job/step\n");
  write("/sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(processors(), 4);
}

TEST_F(CpuQuota, AnAncestorLimitsToo) {
  write("/proc/self/cgroup", "0::/job/step\n");
  write("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(processors(), 2) << "rounded down";
}

TEST_F(CpuQuota, LessThanOneProcessorCountsAsOne) {
  write("/proc/self/cgroup", "0::/job\n");
  write("/sys/fs/cgroup/job/cpu.max", "20000 100000\n");
  EXPECT_EQ(processors(), 1);
}

TEST_F(CpuQuota, VersionOne) {
  write("/proc/self/cgroup", "3:memory:/m\n2:cpu,cpuacct:/job\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "600000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(processors(), 3);
}

TEST_F(CpuQuota, VersionOneWithoutLimit) {
  write("/proc/self/cgroup", "1:cpu:/\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processors(), 0);
}

TEST_F(CpuQuota, AContainerSeesItsOwnGroupAtTheMountPoint) {
  write("/proc/self/cgroup", "1:cpu:/docker/0123\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processors(), 5);
}

TEST_F(CpuQuota, NonsenseIsNoLimit) {
  write("/proc/self/cgroup", "nonsense\n0:\n0::/a\n1:cpu:/a\n");
  write("/sys/fs/cgroup/a/cpu.max", "100000 0\n");
  write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "x\n");
  EXPECT_EQ(processors(), 0);
}

// ---- This process ----

TEST(Discover, TwiceTheSame) {
  const Location first = discover_location(), second = discover_location();
  EXPECT_EQ(first.host, second.host);
  EXPECT_EQ(first.machine, second.machine);
  EXPECT_NE(first.host, HostId{});
  EXPECT_EQ(first.process, getpid());
  EXPECT_EQ(first.user, geteuid());
  EXPECT_GE(first.cores_allowed, 1);
  EXPECT_STREQ(first.hostname, second.hostname);
}

// Runs `measure` in a child process, which may change what it likes about itself; nothing when the child could not.
template <class Measure>
bool in_child(Measure measure, Location& location) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    Location found;
    const bool able = measure(found);
    const bool told = able && write(ends[1], &found, sizeof found) == static_cast<ssize_t>(sizeof found);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  const bool received = read(ends[0], &location, sizeof location) == static_cast<ssize_t>(sizeof location);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return received && status == 0;
}

TEST(Discover, AnotherNetworkNamespaceIsAnotherNodeOfTheSameMachine) {
  for (const int namespaces : {CLONE_NEWNET, CLONE_NEWIPC}) {
    Location inside;
    const bool able = in_child(
        [&](Location& found) {
          if (unshare(namespaces) != 0) return false;
          found = discover_location();
          return true;
        },
        inside);
    if (!able) GTEST_SKIP() << "no permission to make namespaces";
    const Location outside = discover_location();
    EXPECT_NE(inside.host, outside.host);
    EXPECT_EQ(inside.machine, outside.machine);
  }
}

TEST(Discover, BoundToOneProcessor) {
  Location inside;
  const bool able = in_child(
      [](Location& found) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0) return false;
        found = discover_location();
        return true;
      },
      inside);
  if (!able) GTEST_SKIP() << "no permission to bind";
  EXPECT_EQ(inside.cores_allowed, 1);
  const auto here = load_machine({});
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(inside.core >= 0, here->cores > 0);
}

}  // namespace
}  // namespace plait::topo
