// Discovery of HCAs against a fake libibverbs, at the level of its C functions.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "topo/detail/verbs_functions.h"

namespace plait::topo {
namespace {

using detail::PortAttributes;
using detail::VerbsFunctions;

// ---- The fake ----

struct FakePort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  std::uint8_t width = 2;    // 4X
  std::uint32_t speed = 32;  // EDR
  bool ethernet = false;
  std::uint16_t lid = 0;
  int query_error = 0;
  bool gid_fails = false;
};

struct FakeDevice {
  std::string name;
  std::vector<FakePort> ports;
  int open_error = 0;
  int query_error = 0;
  ibv_device device = {};
  ibv_context context = {};
};

// The C functions have no room for a context of their own: they find the fake here.
std::vector<FakeDevice>* host = nullptr;
int list_error = 0;
int open_contexts = 0;
int open_lists = 0;

FakeDevice& fake_of(const ibv_device* device) {
  for (auto& fake : *host) {
    if (&fake.device == device) return fake;
  }
  std::abort();
}

FakePort& port_of(ibv_context* context, std::uint8_t port) { return fake_of(context->device).ports.at(port - 1u); }

ibv_device** get_device_list(int* count) {
  if (list_error != 0) {
    errno = list_error;
    return nullptr;
  }
  ++open_lists;
  *count = static_cast<int>(host->size());
  auto** list = new ibv_device*[host->size() + 1]();
  for (std::size_t index = 0; index < host->size(); ++index) list[index] = &(*host)[index].device;
  return list;
}

void free_device_list(ibv_device** list) {
  --open_lists;
  delete[] list;
}

const char* get_device_name(ibv_device* device) { return fake_of(device).name.c_str(); }

ibv_context* open_device(ibv_device* device) {
  FakeDevice& fake = fake_of(device);
  errno = fake.open_error;
  if (fake.open_error != 0) return nullptr;
  ++open_contexts;
  fake.context.device = device;
  return &fake.context;
}

int close_device(ibv_context*) {
  --open_contexts;
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  FakeDevice& fake = fake_of(context->device);
  attributes->phys_port_cnt = static_cast<std::uint8_t>(fake.ports.size());
  return fake.query_error;
}

int query_port(ibv_context* context, std::uint8_t number, PortAttributes* attributes) {
  const FakePort& port = port_of(context, number);
  attributes->base.state = port.state;
  attributes->base.active_width = port.width;
  attributes->base.active_speed = static_cast<std::uint8_t>(port.speed);
  if (port.speed > 255) attributes->speed_extended = port.speed;
  attributes->base.lid = port.lid;
  attributes->base.link_layer = port.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return port.query_error;
}

int query_gid(ibv_context* context, std::uint8_t number, int index, ibv_gid* gid) {
  const FakePort& port = port_of(context, number);
  if (port.gid_fails || index != 0) return -1;
  gid->raw[0] = 0xfe;
  gid->raw[1] = 0x80;
  gid->raw[15] = number;
  return 0;
}

// A host whose logical NUMA order is the reverse of the kernel's.
int numa_logical_index(int os_index) { return os_index < 0 ? -1 : 1 - os_index; }

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    host = &devices_;
    list_error = 0;
    std::string pattern = (std::filesystem::temp_directory_path() / "plait-verbs-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    sysfs_ = pattern;
  }
  void TearDown() override {
    std::filesystem::remove_all(sysfs_);
    EXPECT_EQ(open_contexts, 0) << "every opened device is closed";
    EXPECT_EQ(open_lists, 0) << "every device list is freed";
    host = nullptr;
  }

  FakeDevice& add(const std::string& name, std::vector<FakePort> ports, int numa_node = -1) {
    devices_.push_back({.name = name, .ports = std::move(ports)});
    const auto directory = sysfs_ / name;
    std::filesystem::create_directories(directory / "device");
    std::ofstream(directory / "device" / "numa_node") << numa_node << '\n';
    std::snprintf(devices_.back().device.ibdev_path, sizeof devices_.back().device.ibdev_path, "%s", directory.c_str());
    return devices_.back();
  }

  Result<std::vector<VerbsPort>> list() const {
    return detail::list_ports({.get_device_list = get_device_list,
                               .free_device_list = free_device_list,
                               .get_device_name = get_device_name,
                               .open_device = open_device,
                               .close_device = close_device,
                               .query_device = query_device,
                               .query_port = query_port,
                               .query_gid = query_gid,
                               .numa_logical_index = numa_logical_index});
  }

  std::vector<FakeDevice> devices_;
  std::filesystem::path sysfs_;
};

// ---- Rates ----

double gigabits(std::uint8_t width_code, std::uint32_t speed_code) {
  return detail::link_bytes_per_second(width_code, speed_code) * 8 / 1e9;
}

TEST(VerbsRate, EverySpeedOfAFourLaneLink) {
  EXPECT_DOUBLE_EQ(gigabits(2, 1), 8);       // SDR
  EXPECT_DOUBLE_EQ(gigabits(2, 2), 16);      // DDR
  EXPECT_DOUBLE_EQ(gigabits(2, 4), 32);      // QDR
  EXPECT_NEAR(gigabits(2, 8), 40, 1e-6);     // FDR10
  EXPECT_NEAR(gigabits(2, 16), 54.5, 0.1);   // FDR
  EXPECT_NEAR(gigabits(2, 32), 100, 1e-6);   // EDR
  EXPECT_NEAR(gigabits(2, 64), 200, 1e-6);   // HDR
  EXPECT_NEAR(gigabits(2, 128), 400, 1e-6);  // NDR
  EXPECT_NEAR(gigabits(2, 256), 800, 1e-6);  // XDR
}

TEST(VerbsRate, EveryWidth) {
  EXPECT_NEAR(gigabits(1, 32), 25, 1e-6);
  EXPECT_NEAR(gigabits(16, 32), 50, 1e-6);
  EXPECT_NEAR(gigabits(4, 32), 200, 1e-6);
  EXPECT_NEAR(gigabits(8, 32), 300, 1e-6);
}

TEST(VerbsRate, CodesNobodyDefines) {
  EXPECT_EQ(gigabits(0, 32), 0);
  EXPECT_EQ(gigabits(3, 32), 0);
  EXPECT_EQ(gigabits(2, 0), 0);
  EXPECT_EQ(gigabits(2, 3), 0);
}

// ---- Ports ----

TEST_F(Verbs, UpDownAndMixedRatePorts) {
  add("mlx5_0", {{.speed = 64, .lid = 12}, {.state = IBV_PORT_DOWN, .speed = 1}}, 0);
  add("mlx5_1", {{.width = 1, .speed = 32, .ethernet = true}}, 1);
  const auto ports = list();
  ASSERT_TRUE(ports.ok());
  ASSERT_EQ(ports->size(), 3u);
  const VerbsPort &up = (*ports)[0], &down = (*ports)[1], &slower = (*ports)[2];
  EXPECT_EQ(up.device, "mlx5_0");
  EXPECT_TRUE(up.active);
  EXPECT_EQ(up.state, "active");
  EXPECT_FALSE(up.ethernet);
  EXPECT_NEAR(up.bytes_per_second, 25e9, 1);
  EXPECT_EQ(up.lid, 12);
  EXPECT_EQ(up.gid, "fe80::1");
  EXPECT_EQ(up.numa, 1);
  EXPECT_EQ(down.port, 2);
  EXPECT_FALSE(down.active);
  EXPECT_EQ(down.state, "down");
  EXPECT_EQ(down.bytes_per_second, 0);
  EXPECT_EQ(slower.device, "mlx5_1");
  EXPECT_TRUE(slower.ethernet);
  EXPECT_NEAR(slower.bytes_per_second, 25e9 / 8, 1);
  EXPECT_EQ(slower.numa, 0);
}

TEST_F(Verbs, SpeedBeyondEightBits) {
  add("mlx5_0", {{.speed = 256}});
  const auto ports = list();
  ASSERT_TRUE(ports.ok());
  EXPECT_NEAR(ports->at(0).bytes_per_second, 100e9, 1);
  EXPECT_EQ(ports->at(0).numa, -1);
}

TEST_F(Verbs, OnlyActiveIsActive) {
  const std::vector<std::pair<ibv_port_state, std::string>> states = {
      {IBV_PORT_NOP, "unknown"}, {IBV_PORT_DOWN, "down"},     {IBV_PORT_INIT, "init"},
      {IBV_PORT_ARMED, "armed"}, {IBV_PORT_ACTIVE, "active"}, {IBV_PORT_ACTIVE_DEFER, "active, deferred"}};
  std::vector<FakePort> fakes;
  for (const auto& [state, text] : states) fakes.push_back({.state = state});
  add("mlx5_0", fakes);
  const auto ports = list();
  ASSERT_TRUE(ports.ok());
  ASSERT_EQ(ports->size(), states.size());
  for (std::size_t index = 0; index < states.size(); ++index) {
    EXPECT_EQ((*ports)[index].state, states[index].second);
    EXPECT_EQ((*ports)[index].active, states[index].first == IBV_PORT_ACTIVE);
    EXPECT_EQ((*ports)[index].bytes_per_second > 0, (*ports)[index].active);
  }
}

TEST_F(Verbs, NoDevice) {
  const auto ports = list();
  ASSERT_TRUE(ports.ok());
  EXPECT_TRUE(ports->empty());
}

TEST_F(Verbs, NoKernelSupport) {
  list_error = ENOSYS;
  const auto ports = list();
  ASSERT_FALSE(ports.ok());
  EXPECT_EQ(ports.status().code(), Code::unavailable);
  EXPECT_EQ(ports.status().message(), "the kernel has no InfiniBand verbs");
}

TEST_F(Verbs, NoDeviceList) {
  list_error = EACCES;
  EXPECT_EQ(list().status().message(), "no device list: Permission denied");
}

TEST_F(Verbs, ADeviceThatRefusesIsListedWithTheReason) {
  add("mlx5_0", {{}}).open_error = EPERM;
  add("mlx5_1", {{}}).query_error = EIO;
  add("mlx5_2", {{.query_error = EINVAL}});
  add("mlx5_3", {{.gid_fails = true}});
  const auto ports = list();
  ASSERT_TRUE(ports.ok());
  ASSERT_EQ(ports->size(), 4u);
  EXPECT_EQ((*ports)[0].state, "cannot be opened: Operation not permitted");
  EXPECT_EQ((*ports)[1].state, "cannot be queried: Input/output error");
  EXPECT_EQ((*ports)[2].state, "cannot be queried: Invalid argument");
  for (int index = 0; index < 3; ++index) EXPECT_FALSE((*ports)[static_cast<std::size_t>(index)].active);
  EXPECT_TRUE((*ports)[3].active);
  EXPECT_EQ((*ports)[3].gid, "");
}

TEST_F(Verbs, ADeviceWithoutASysfsEntryHasNoNumaNode) {
  add("rxe0", {{}});
  std::filesystem::remove_all(sysfs_ / "rxe0");
  EXPECT_EQ(list()->at(0).numa, -1);
}

TEST(SystemVerbs, SaysWhyThereIsNone) {
  const auto ports = system_verbs()->ports();
  if (!ports.ok()) {
    EXPECT_FALSE(ports.status().message().empty());
  }
}

}  // namespace
}  // namespace plait::topo
