// The C functions of NVIDIA's management library that discovery calls, as a table: the real one is filled from
// libnvidia-ml.so.1 at run time, the tests fill it with GPUs that no machine here has. Types and numbers are those of
// NVML's API reference. Internal to topo/ and its tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/gpus.h"

namespace plait::topo::detail {

using NvmlDevice = struct NvmlDeviceHandle*;

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlFieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, result;  // of the value; 0: it is there
  union {
    double real;
    unsigned number;
    unsigned long long long_number;
  } value;
};

inline constexpr unsigned nvml_field_link_speed = 90;  // MB/s of a link that is up, in one direction
inline constexpr int nvml_type_unsigned = 1;           // of a field's value
inline constexpr unsigned nvml_most_links = 18;
enum : int { nvml_end_gpu = 0, nvml_end_switch = 2 };

// All return 0, or an error that error_text() has words for.
struct NvmlFunctions {
  int (*init)();
  const char* (*error_text)(int error);
  int (*count)(unsigned* count);
  int (*handle)(unsigned index, NvmlDevice* device);
  int (*name)(NvmlDevice device, char* name, unsigned length);
  int (*uuid)(NvmlDevice device, char* uuid, unsigned length);
  int (*pci)(NvmlDevice device, NvmlPciInfo* info);
  int (*memory)(NvmlDevice device, NvmlMemory* memory);
  int (*link_state)(NvmlDevice device, unsigned link, int* up);
  int (*link_peer)(NvmlDevice device, unsigned link, NvmlPciInfo* info);
  int (*link_end)(NvmlDevice device, unsigned link, int* end);  // null: drivers before 450 have it not
  int (*fields)(NvmlDevice device, int count, NvmlFieldValue* values);
};

Result<std::vector<GpuFacts>> list_gpus(const NvmlFunctions& nvml);

// "0000:1b:00.0" of "00000000:1B:00.0"; "" of what is no address, and of the one that stands for none.
std::string pci_address(std::string_view bus_id);

// The PCI address of the device of the calling thread's context, from the driver that this handle of dlopen is; ""
// where it has none.
std::string gpu_of_context(void* driver);

}  // namespace plait::topo::detail
