// The libibverbs C functions that discovery calls, as a table: the real one is filled from libibverbs.so.1 at run time,
// the tests fill it with ports that no machine here has. Internal to topo/ and its tests.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "topo/discovery.h"

namespace plait::topo::detail {

// ibv_query_port's answer, and the speed that grew out of its eight bits with XDR (rdma-core 50 and later).
struct PortAttributes {
  ibv_port_attr base;
  std::uint32_t speed_extended;  // 0 where libibverbs does not know it
};

struct VerbsFunctions {
  ibv_device** (*get_device_list)(int* count);  // null with errno on failure
  void (*free_device_list)(ibv_device** list);
  const char* (*get_device_name)(ibv_device* device);
  ibv_context* (*open_device)(ibv_device* device);  // null with errno on failure
  int (*close_device)(ibv_context* context);
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes);                  // 0 or errno
  int (*query_port)(ibv_context* context, std::uint8_t port, PortAttributes* attributes);  // 0 or errno
  int (*query_gid)(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid);      // 0 or -1
  int (*numa_logical_index)(int os_index);  // hwloc's number for the kernel's NUMA node, -1 unknown
};

Result<std::vector<VerbsPort>> list_ports(const VerbsFunctions& verbs);

// Bytes a second of payload that a link of this width and speed code carries; 0 for codes that nobody defines.
double link_bytes_per_second(std::uint8_t width_code, std::uint32_t speed_code);

}  // namespace plait::topo::detail
