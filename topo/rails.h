// The rails that this host offers between nodes: ports of HCAs, or Ethernet interfaces where there is none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/discovery.h"

namespace plait::topo {

enum class RailKind : std::uint8_t { ethernet, infiniband, roce };
std::string_view name(RailKind kind);

struct Rail {
  std::string name;  // "eth0", "mlx5_0:1": as UCX and PLAIT_RAILS name it
  RailKind kind = RailKind::ethernet;
  std::string network;  // what it hangs on, the same on all nodes: "10.0.0.0/24", "fe80:0:0:0"; with "#2" behind it
                        // for a host's second port on that network
  std::uint32_t address = 0;    // IPv4 in host order; 0: none
  double bytes_per_second = 0;  // as the port says; 0: unknown
  bool used = false;
  std::string state;  // "up"; else why it cannot be used
};

// One network interface as the kernel reports it.
struct Interface {
  std::string name;
  bool up = false, running = false, loopback = false;
  bool bridge = false;                     // of virtual machines or containers: its subnet is the host's own
  std::uint32_t address = 0, netmask = 0;  // IPv4 in host order
  double bytes_per_second = 0;             // 0: unknown
};

// Of this network namespace, those with an IPv4 address, by name. Never fails: what cannot be read is not listed.
std::vector<Interface> network_interfaces();

// Active ports of HCAs are the rails, and interfaces only where there is none. In the order of names, those that cannot
// be used as well.
std::vector<Rail> rails_of(std::span<const VerbsPort> ports, std::span<const Interface> interfaces);

// `wanted`: "all", a number ("2": the first two), or names separated by commas, in the order in which they shall be
// numbered. Sets Rail::used, and says in Rail::state why one is not. Fails with what was expected where the text is
// neither.
Status choose_rails(std::vector<Rail>& rails, std::string_view wanted);

// Of this host. Takes a millisecond: call it once and keep the result.
std::vector<Rail> discover_rails();

// Whether the kernel says that the rail's link is there at the moment; true where this process can open no file to see
// it. A look at a file or two: for waits only.
bool link_is_up(const Rail& rail);

}  // namespace plait::topo
