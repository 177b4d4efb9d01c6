// A libibverbs.so.1 with one adapter of two ports, the first an active XDR port and the second down. Found through
// LD_LIBRARY_PATH in place of the system's, it shows the whole of `plait topo` a host with an HCA.
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#undef ibv_query_port

namespace {

ibv_device device;
ibv_device* list[] = {&device, nullptr};
verbs_context context;

// As rdma-core 50 and later answers: the speed that needs more than eight bits follows the older fields.
constexpr std::size_t speed_extended_at = 52;
constexpr std::uint32_t xdr = 256;

int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attributes, std::size_t bytes) {
  std::memset(static_cast<void*>(attributes), 0, bytes);
  attributes->state = port == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->active_width = 2;
  attributes->active_speed = 128;
  attributes->lid = port;
  attributes->link_layer = IBV_LINK_LAYER_INFINIBAND;
  if (bytes >= speed_extended_at + sizeof xdr) {
    std::memcpy(reinterpret_cast<char*>(attributes) + speed_extended_at, &xdr, sizeof xdr);
  }
  return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  std::strcpy(device.name, "fake_0");
  std::strcpy(device.ibdev_path, "/nonexistent");
  if (count != nullptr) *count = 1;
  return list;
}

void ibv_free_device_list(ibv_device**) {}

const char* ibv_get_device_name(ibv_device* asked) { return asked->name; }

ibv_context* ibv_open_device(ibv_device* asked) {
  context.sz = sizeof context;
  context.query_port = query_port;
  context.context.device = asked;
  context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  return &context.context;
}

int ibv_close_device(ibv_context*) { return 0; }

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  attributes->phys_port_cnt = 2;
  return 0;
}

int ibv_query_gid(ibv_context*, std::uint8_t port, int, ibv_gid* gid) {
  gid->raw[15] = port;
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr*) { return -1; }

}  // extern "C"
#pragma GCC visibility pop
