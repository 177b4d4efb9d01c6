// Where a rank runs. Plain data, exchanged once a communicator as raw bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

namespace plait::topo {

// Identity of the operating-system instance and namespaces a rank lives in. Two ranks are on the same node exactly
// when their HostIds are equal: only then can they share memory and a NIC. Made from the boot id and the ipc and net
// namespaces, never from the host name alone.
struct HostId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const HostId&) const = default;
};

struct Location {
  HostId host;
  std::uint64_t machine = 0;      // hash of the boot id only: emulated nodes on one machine have it in common
  std::uint64_t leaf_switch = 0;  // hash of the name of the network switch the node hangs on; 0: unknown
  // Logical hwloc indices, machine-wide; -1 where the binding does not say (an unbound rank, or one bound to several).
  std::int32_t package = -1;
  std::int32_t numa = -1;
  std::int32_t l3 = -1;
  std::int32_t core = -1;
  // The GPU that the process computes on, as the driver's library numbers them, and the island of such that reach each
  // other by links of their own (topo/gpus.h); -1: unknown, or none.
  std::int32_t gpu = -1;
  std::int32_t island = -1;
  std::int32_t cores_allowed = 1;  // processing units of the machine usable by this process (affinity and cgroup quota)
  std::int32_t process = 0;        // process id in its own namespace
  std::uint32_t user = 0;          // effective user id
  char hostname[64] = {};          // for people only, NUL-terminated
};
static_assert(std::is_trivially_copyable_v<Location>);

}  // namespace plait::topo
