// HCAs and their ports. Rates: InfiniBand Architecture Specification, volume 1, PortInfo LinkWidthActive,
// LinkSpeedActive and LinkSpeedExtActive.
#include <arpa/inet.h>
#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "topo/detail/hwloc_topology.h"
#include "topo/detail/verbs_functions.h"

namespace plait::topo {
namespace detail {
namespace {

constexpr double gigabit = 1e9;

// One lane: its signalling rate, and the share of it that is data after line encoding and forward error correction.
struct LaneSpeed {
  std::uint32_t code;
  double bits_per_second;
  double efficiency;
};
constexpr double encoding_8_10 = 8.0 / 10;
constexpr double encoding_64_66 = 64.0 / 66;
constexpr double encoding_256_257_fec = 256.0 / 257 * (514.0 / 544);  // PAM4 lanes: RS(544,514)
constexpr std::array lane_speeds = {
    LaneSpeed{1, 2.5 * gigabit, encoding_8_10},              // SDR
    LaneSpeed{2, 5.0 * gigabit, encoding_8_10},              // DDR
    LaneSpeed{4, 10.0 * gigabit, encoding_8_10},             // QDR
    LaneSpeed{8, 10.3125 * gigabit, encoding_64_66},         // FDR10
    LaneSpeed{16, 14.0625 * gigabit, encoding_64_66},        // FDR
    LaneSpeed{32, 25.78125 * gigabit, encoding_64_66},       // EDR
    LaneSpeed{64, 53.125 * gigabit, encoding_256_257_fec},   // HDR
    LaneSpeed{128, 106.25 * gigabit, encoding_256_257_fec},  // NDR
    LaneSpeed{256, 212.5 * gigabit, encoding_256_257_fec},   // XDR
};

int lanes_of(std::uint8_t width_code) {
  switch (width_code) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

std::string state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "init";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ACTIVE_DEFER:
      return "active, deferred";
    default:
      return "unknown";
  }
}

std::string error_text(int error) { return std::strerror(error); }

// The kernel's number of the NUMA node that the device's PCI slot is nearest to; -1 where sysfs does not say.
int numa_os_index(const ibv_device& device) {
  std::ifstream file(std::string(device.ibdev_path) + "/device/numa_node");
  int index = -1;
  return file >> index ? index : -1;
}

std::string gid_text(const VerbsFunctions& verbs, ibv_context* context, int port) {
  ibv_gid gid = {};
  char text[INET6_ADDRSTRLEN];
  if (verbs.query_gid(context, static_cast<std::uint8_t>(port), 0, &gid) != 0) return "";
  return inet_ntop(AF_INET6, gid.raw, text, sizeof text) != nullptr ? text : "";
}

VerbsPort describe_port(const VerbsFunctions& verbs, ibv_context* context, VerbsPort port) {
  PortAttributes attributes = {};
  const int error = verbs.query_port(context, static_cast<std::uint8_t>(port.port), &attributes);
  if (error != 0) {
    port.state = "cannot be queried: " + error_text(error);
    return port;
  }
  const ibv_port_attr& base = attributes.base;
  port.active = base.state == IBV_PORT_ACTIVE;
  port.state = state_text(base.state);
  port.ethernet = base.link_layer == IBV_LINK_LAYER_ETHERNET;
  port.lid = base.lid;
  port.gid = gid_text(verbs, context, port.port);
  const std::uint32_t speed = attributes.speed_extended != 0 ? attributes.speed_extended : base.active_speed;
  if (port.active) port.bytes_per_second = link_bytes_per_second(base.active_width, speed);
  return port;
}

void list_device(const VerbsFunctions& verbs, ibv_device* device, std::vector<VerbsPort>& ports) {
  VerbsPort port;
  const char* name = verbs.get_device_name(device);
  port.device = name != nullptr ? name : "unnamed";
  port.numa = verbs.numa_logical_index(numa_os_index(*device));
  // A device that refuses is listed as a port that is not active, with the reason: people look for it.
  const auto refuse = [&](const char* what, int error) {
    port.state = std::string(what) + ": " + error_text(error);
    ports.push_back(port);
  };
  const auto close = [&](ibv_context* context) { verbs.close_device(context); };
  const std::unique_ptr<ibv_context, decltype(close)> context(verbs.open_device(device), close);
  if (!context) return refuse("cannot be opened", errno);
  ibv_device_attr attributes = {};
  if (const int error = verbs.query_device(context.get(), &attributes); error != 0) {
    return refuse("cannot be queried", error);
  }
  for (port.port = 1; port.port <= attributes.phys_port_cnt; ++port.port) {
    ports.push_back(describe_port(verbs, context.get(), port));
  }
}

}  // namespace

double link_bytes_per_second(std::uint8_t width_code, std::uint32_t speed_code) {
  for (const LaneSpeed& lane : lane_speeds) {
    if (lane.code == speed_code) return lanes_of(width_code) * lane.bits_per_second * lane.efficiency / 8;
  }
  return 0;
}

Result<std::vector<VerbsPort>> list_ports(const VerbsFunctions& verbs) {
  int count = 0;
  errno = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (list == nullptr) {
    return Status(Code::unavailable, errno == ENOSYS ? std::string("the kernel has no InfiniBand verbs")
                                                     : "no device list: " + error_text(errno));
  }
  std::vector<VerbsPort> ports;
  for (int index = 0; index < count; ++index) list_device(verbs, list[index], ports);
  verbs.free_device_list(list);
  return ports;
}

}  // namespace detail

namespace {

using QueryPortCompatible = int (*)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
QueryPortCompatible query_port_compatible = nullptr;  // set once, by load_verbs

// What the header's inline ibv_query_port does, without its link-time reference to the library. The buffer is longer
// than this header's ibv_port_attr: a newer libibverbs writes its newer fields there, an older one zeroes them.
int query_port(ibv_context* context, std::uint8_t port, detail::PortAttributes* attributes) {
  constexpr std::size_t speed_extended_at = 52;  // `active_speed_ex`, which follows port_cap_flags2
  static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);
  alignas(ibv_port_attr) std::array<std::byte, 128> buffer = {};
  auto* raw = reinterpret_cast<ibv_port_attr*>(buffer.data());
  verbs_context* extended = verbs_get_ctx_op(context, query_port);
  const int error = extended != nullptr
                        ? extended->query_port(context, port, raw, buffer.size())
                        : query_port_compatible(context, port, reinterpret_cast<_compat_ibv_port_attr*>(raw));
  std::memcpy(&attributes->base, buffer.data(), sizeof attributes->base);
  std::memcpy(&attributes->speed_extended, buffer.data() + speed_extended_at, sizeof attributes->speed_extended);
  return error;
}

// The hwloc load costs milliseconds, and is only reached on hosts whose devices know their NUMA node.
int numa_logical_index(int os_index) {
  if (os_index < 0) return -1;
  const auto topology = detail::load_topology({});
  return topology.ok() ? detail::numa_logical_index(topology->get(), os_index) : -1;
}

template <class Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// The library stays open: its providers register with it and cannot be unloaded.
Result<detail::VerbsFunctions> load_verbs() {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(Code::unavailable, reason != nullptr ? reason : "libibverbs.so.1 cannot be opened");
  }
  detail::VerbsFunctions verbs = {};
  verbs.query_port = query_port;
  verbs.numa_logical_index = numa_logical_index;
  const bool complete =
      find(library, "ibv_get_device_list", verbs.get_device_list) &&
      find(library, "ibv_free_device_list", verbs.free_device_list) &&
      find(library, "ibv_get_device_name", verbs.get_device_name) &&
      find(library, "ibv_open_device", verbs.open_device) && find(library, "ibv_close_device", verbs.close_device) &&
      find(library, "ibv_query_device", verbs.query_device) && find(library, "ibv_query_gid", verbs.query_gid) &&
      find(library, "ibv_query_port", query_port_compatible);
  if (!complete) return Status(Code::unavailable, "libibverbs.so.1 lacks a function that discovery needs");
  return verbs;
}

class SystemVerbs : public VerbsApi {
 public:
  Result<std::vector<VerbsPort>> ports() override {
    const auto verbs = load_verbs();
    return verbs.ok() ? detail::list_ports(*verbs) : verbs.status();
  }
};

}  // namespace

std::unique_ptr<VerbsApi> system_verbs() { return std::make_unique<SystemVerbs>(); }

}  // namespace plait::topo
