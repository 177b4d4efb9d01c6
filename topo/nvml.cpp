// GPUs, as NVIDIA's management library knows them.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "topo/detail/nvml_functions.h"

namespace plait::topo {
namespace detail {
namespace {

GpuLink::End end_of(const NvmlFunctions& nvml, NvmlDevice device, unsigned link) {
  int end = -1;
  if (nvml.link_end == nullptr || nvml.link_end(device, link, &end) != 0) return GpuLink::End::other;
  return end == nvml_end_gpu      ? GpuLink::End::gpu
         : end == nvml_end_switch ? GpuLink::End::link_switch
                                  : GpuLink::End::other;
}

double bytes_per_second_of_link(const NvmlFunctions& nvml, NvmlDevice device) {
  constexpr double megabyte = 1e6;
  NvmlFieldValue speed = {};
  speed.field = nvml_field_link_speed;
  if (nvml.fields(device, 1, &speed) != 0 || speed.result != 0 || speed.type != nvml_type_unsigned) return 0;
  return speed.value.number * megabyte;
}

// Of each end all links together.
std::vector<GpuLink> links_of(const NvmlFunctions& nvml, NvmlDevice device) {
  std::vector<GpuLink> found;
  for (unsigned link = 0; link < nvml_most_links; ++link) {
    int up = 0;
    if (nvml.link_state(device, link, &up) != 0 || up == 0) continue;
    NvmlPciInfo info = {};
    const bool told = nvml.link_peer(device, link, &info) == 0;
    const GpuLink::End end = end_of(nvml, device, link);
    const std::string peer = told ? pci_address(info.bus_id) : "";
    const auto known = std::find_if(found.begin(), found.end(),
                                    [&](const GpuLink& other) { return other.end == end && other.peer == peer; });
    if (known != found.end())
      ++known->links;
    else
      found.push_back({.end = end, .peer = peer});
  }
  const double rate = found.empty() ? 0 : bytes_per_second_of_link(nvml, device);
  for (GpuLink& link : found) link.bytes_per_second = rate * link.links;
  return found;
}

GpuFacts describe(const NvmlFunctions& nvml, NvmlDevice device) {
  GpuFacts gpu;
  std::array<char, 96> text = {};
  if (nvml.name(device, text.data(), text.size()) == 0) gpu.name = text.data();
  if (nvml.uuid(device, text.data(), text.size()) == 0) gpu.uuid = text.data();
  NvmlPciInfo info = {};
  if (nvml.pci(device, &info) == 0) gpu.pci = pci_address(info.bus_id);
  NvmlMemory memory = {};
  if (nvml.memory(device, &memory) == 0) gpu.bytes = memory.total;
  gpu.links = links_of(nvml, device);
  return gpu;
}

}  // namespace

std::string pci_address(std::string_view bus_id) {
  constexpr unsigned most_domains = 0xffff;
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(std::string(bus_id).c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return "";
  if (domain > most_domains) return "";
  std::array<char, 24> text = {};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0x1f, function & 7);
  return text.data();
}

Result<std::vector<GpuFacts>> list_gpus(const NvmlFunctions& nvml) {
  const auto refusal = [&](const char* what, int error) {
    return Status(Code::unavailable, std::string(what) + ": " + nvml.error_text(error));
  };
  unsigned count = 0;
  if (const int error = nvml.init(); error != 0) return refusal("NVML cannot be initialised", error);
  if (const int error = nvml.count(&count); error != 0) return refusal("NVML does not count GPUs", error);
  std::vector<GpuFacts> gpus;
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    // One that this process may not see keeps its place: the others' numbers are the library's.
    gpus.push_back(nvml.handle(index, &device) == 0 ? describe(nvml, device) : GpuFacts());
  }
  return gpus;
}

std::string gpu_of_context(void* driver) {
  const auto device_of_context = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuCtxGetDevice"));
  const auto bus_id = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetPCIBusId"));
  int device = 0;
  std::array<char, 32> text = {};
  if (device_of_context == nullptr || bus_id == nullptr || device_of_context(&device) != 0) return "";
  return bus_id(text.data(), static_cast<int>(text.size()), device) == 0 ? pci_address(text.data()) : "";
}

}  // namespace detail

namespace {

template <class Function>
bool find_in_nvml(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// The library stays open and initialised: both take long, and others of the process may use it as well.
Result<detail::NvmlFunctions> load_nvml() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(Code::unavailable, reason != nullptr ? reason : "libnvidia-ml.so.1 cannot be opened");
  }
  detail::NvmlFunctions nvml = {};
  const bool complete =
      find_in_nvml(library, "nvmlInit_v2", nvml.init) && find_in_nvml(library, "nvmlErrorString", nvml.error_text) &&
      find_in_nvml(library, "nvmlDeviceGetCount_v2", nvml.count) &&
      find_in_nvml(library, "nvmlDeviceGetHandleByIndex_v2", nvml.handle) &&
      find_in_nvml(library, "nvmlDeviceGetName", nvml.name) && find_in_nvml(library, "nvmlDeviceGetUUID", nvml.uuid) &&
      find_in_nvml(library, "nvmlDeviceGetPciInfo_v3", nvml.pci) &&
      find_in_nvml(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
      find_in_nvml(library, "nvmlDeviceGetNvLinkState", nvml.link_state) &&
      find_in_nvml(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_peer) &&
      find_in_nvml(library, "nvmlDeviceGetFieldValues", nvml.fields);
  find_in_nvml(library, "nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_end);
  if (!complete) return Status(Code::unavailable, "libnvidia-ml.so.1 lacks a function that discovery needs");
  return nvml;
}

class SystemGpus : public GpuApi {
 public:
  Result<std::vector<GpuFacts>> gpus() override {
    const auto nvml = load_nvml();
    return nvml.ok() ? detail::list_gpus(*nvml) : nvml.status();
  }
};

// "" where no driver is loaded, or the thread has no context.
std::string gpu_of_context() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return "";
  std::string found = detail::gpu_of_context(driver);
  dlclose(driver);
  return found;
}

int index_of(std::span<const GpuFacts> gpus, std::string_view pci) {
  for (std::size_t index = 0; index < gpus.size(); ++index)
    if (!pci.empty() && gpus[index].pci == pci) return static_cast<int>(index);
  return -1;
}

}  // namespace

std::unique_ptr<GpuApi> system_gpus() { return std::make_unique<SystemGpus>(); }

bool computes_on_gpu() { return !gpu_of_context().empty(); }

int own_gpu(std::span<const GpuFacts> gpus, std::string_view only) {
  if (const int found = index_of(gpus, gpu_of_context()); found >= 0) return found;
  if (only.empty()) return -1;
  for (std::size_t index = 0; index < gpus.size(); ++index)
    if (only == std::to_string(index) || (only.size() > 4 && gpus[index].uuid.starts_with(only)))
      return static_cast<int>(index);
  return -1;
}

}  // namespace plait::topo
