// What a call takes between devices, and by way of the processor's memory.
#include <gtest/gtest.h>

#include "plan/choose/device_cost.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

// Two islands of GPUs, linked at 100 GB/s within and 10 GB/s across.
Machine gpu_machine() {
  Machine machine = default_machine();
  machine.levels = {{.name = "node", .latency = 1e-5, .network = true},
                    {.name = "island", .latency = 1e-6, .devices = {.latency = 4e-6, .seconds_per_byte = 1e-10}},
                    {.name = "gpu", .latency = 1e-6, .devices = {.latency = 2e-6, .seconds_per_byte = 1e-11}}};
  machine.to_device = {.latency = 1e-5, .seconds_per_byte = 1e-10};
  machine.from_device = {.latency = 1e-5, .seconds_per_byte = 2e-10};
  return machine;
}

Hierarchy shape_of(const char* text) { return parse_shape(text)->hierarchy; }

constexpr double mega = 1e6;
Call call_of_bytes(Collective collective, double bytes) {
  return {.collective = collective, .count = static_cast<std::size_t>(bytes), .element_bytes = 1};
}

// A level of the shape that the machine does not name has its innermost links.
TEST(DeviceCost, CountsTheBusiestRanksBytes) {
  const auto cost = device_cost(call_of_bytes(Collective::allreduce, 8 * mega), shape_of("1x4"), gpu_machine(), 1e-3);
  ASSERT_TRUE(cost && cost->between_s);
  EXPECT_NEAR(*cost->between_s, 2 * 3 * 2 * mega * 1e-11 + 2e-6 + 2e-6, 1e-9);
  EXPECT_NEAR(cost->staged_s, 1e-3 + 1e-5 + 8 * mega * 2e-10 + 1e-5 + 8 * mega * 1e-10, 1e-9);
}

TEST(DeviceCost, PartsCountForEachRank) {
  const auto cost = device_cost(call_of_bytes(Collective::alltoall, mega), shape_of("1x4"), gpu_machine(), 0);
  ASSERT_TRUE(cost && cost->between_s);
  EXPECT_NEAR(*cost->between_s, 3 * mega * 1e-11 + 2e-6 + 2e-6, 1e-9);
  EXPECT_NEAR(cost->staged_s, 2e-5 + 4 * mega * 3e-10, 1e-9);
}

// Of 7 others 4 are on the other island.
TEST(DeviceCost, EachLinkHasItsShare) {
  const Machine machine = gpu_machine();
  std::vector<Location> locations(8);
  for (int rank = 0; rank < 8; ++rank) {
    locations[static_cast<std::size_t>(rank)].island = rank / 4;
    locations[static_cast<std::size_t>(rank)].gpu = rank;
  }
  const auto cost =
      device_cost(call_of_bytes(Collective::allgather, mega), Hierarchy::from_locations(locations), machine, 0);
  ASSERT_TRUE(cost && cost->between_s);
  EXPECT_NEAR(*cost->between_s, 4 * mega * 1e-10 + 3 * mega * 1e-11 + 4e-6 + 2e-6, 1e-9);
}

TEST(DeviceCost, IsNotKnownWhereNothingWasMeasured) {
  EXPECT_FALSE(device_cost(call_of_bytes(Collective::allreduce, 8), shape_of("1x4"), default_machine(), 1));
  Machine unmapped = gpu_machine();
  for (LinkLevel& level : unmapped.levels) level.devices = {};
  const auto staged = device_cost(call_of_bytes(Collective::allreduce, 8), shape_of("1x4"), unmapped, 1);
  ASSERT_TRUE(staged);
  EXPECT_FALSE(staged->between_s);
  EXPECT_FALSE(device_cost(call_of_bytes(Collective::allreduce, 8), shape_of("2x4"), gpu_machine(), 1)->between_s);
  EXPECT_FALSE(device_cost(call_of_bytes(Collective::barrier, 0), shape_of("1x4"), gpu_machine(), 1)->between_s);
}

TEST(DeviceCost, IsOfAFile) {
  const auto machine = parse_machine(machine_json(gpu_machine()));
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_DOUBLE_EQ(machine->levels[1].devices.seconds_per_byte, 1e-10);
  EXPECT_DOUBLE_EQ(machine->levels[2].devices.latency, 2e-6);
  EXPECT_FALSE(machine->levels[0].devices.known());
  EXPECT_DOUBLE_EQ(machine->from_device.seconds_per_byte, 2e-10);
  for (const auto& [text, where] :
       {std::pair{R"({"plait_machine":1,"name":"x","levels":[{"name":"node","devices":3}]})", "levels[0].devices"},
        {R"({"plait_machine":1,"name":"x","levels":[{"name":"node"}],"devices":{"up":{}}})", "devices.\"up\""},
        {R"({"plait_machine":1,"name":"x","levels":[{"name":"node"}],"devices":{"to":[]}})", "devices.to"}}) {
    const auto bad = parse_machine(text);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_NE(bad.status().message().find(where), std::string::npos) << bad.status().message();
  }
}

}  // namespace
}  // namespace plait::plan
