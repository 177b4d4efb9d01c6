// A libnvidia-ml.so.1 with two GPUs that are linked to each other, for what only whole programs show; and of the driver
// the two functions that say which of them a thread's context is on: the second.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "topo/detail/nvml_functions.h"

using plait::topo::detail::NvmlDevice;
using plait::topo::detail::NvmlFieldValue;
using plait::topo::detail::NvmlMemory;
using plait::topo::detail::NvmlPciInfo;

namespace {

constexpr unsigned fake_count = 2, fake_links = 4;

unsigned index_of(NvmlDevice device) { return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1); }

int tell_address(unsigned index, NvmlPciInfo* info) {
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", 0xa0 + index);
  return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int) { return "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = fake_count, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  *device = reinterpret_cast<NvmlDevice>(std::uintptr_t{index} + 1);
  return index < fake_count ? 0 : 2;
}
int nvmlDeviceGetName(NvmlDevice, char* name, unsigned length) { return std::snprintf(name, length, "Fake GPU"), 0; }
int nvmlDeviceGetUUID(NvmlDevice device, char* uuid, unsigned length) {
  return std::snprintf(uuid, length, "GPU-fake-%u", index_of(device)), 0;
}
int nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo* info) { return tell_address(index_of(device), info); }
int nvmlDeviceGetMemoryInfo(NvmlDevice, NvmlMemory* memory) { return memory->total = 1ull << 34, 0; }
int nvmlDeviceGetNvLinkState(NvmlDevice, unsigned link, int* up) { return *up = 1, link < fake_links ? 0 : 2; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned, NvmlPciInfo* info) {
  return tell_address(1 - index_of(device), info);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice, unsigned, int* end) {
  return *end = plait::topo::detail::nvml_end_gpu, 0;
}
int nvmlDeviceGetFieldValues(NvmlDevice, int, NvmlFieldValue* value) {
  value->result = 0;
  value->type = plait::topo::detail::nvml_type_unsigned;
  value->value.number = 25000;
  return 0;
}

int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuDeviceGetPCIBusId(char* text, int length, int) {
  return std::snprintf(text, static_cast<std::size_t>(length), "0000:A1:00.0"), 0;
}
}
#pragma GCC visibility pop
