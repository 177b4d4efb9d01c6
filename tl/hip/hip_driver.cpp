#include "tl/hip/hip_driver.h"

#include <dlfcn.h>

#include <string>

#include "tl/blocking_stream.h"

namespace plait::tl {
namespace {

constexpr int success = 0, copy_default = 4;  // hipMemcpyDefault: between memory of any kinds

// hipPointerAttribute_t of ROCm 5 and 6, whose numbers for types differ; with room behind it.
struct Attributes {
  int type;
  int device;
  void* device_address;
  void* host_address;  // nullptr: the processor has none for it
  int managed;
  unsigned flags;
  char more[64];
};

struct Functions {
  int (*attributes)(Attributes*, const void* address) = nullptr;
  int (*copy)(void* to, const void* from, std::size_t bytes, int kind) = nullptr;
  const char* (*error_name)(int) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

class HipDriver final : public DeviceDriver {
 public:
  explicit HipDriver(const Functions& functions) : functions_(functions) {}

  const char* name() const override { return "HIP"; }

  // What it tells of an allocation is not asked for: nothing is kept of one.
  DeviceMemory memory_at(const void* address) const override {
    Attributes found{};
    if (functions_.attributes(&found, address) != success || found.device_address == nullptr) return {};
    if (found.managed != 0) return {.kind = MemoryKind::managed, .device = found.device};
    return {.kind = found.host_address == nullptr ? MemoryKind::device : MemoryKind::pinned, .device = found.device};
  }

  Result<std::unique_ptr<DeviceStream>> make_stream(const DeviceMemory&) const override {
    return std::unique_ptr<DeviceStream>(std::make_unique<BlockingStream>(*this));
  }
  Result<std::unique_ptr<DeviceEvent>> make_event(const DeviceMemory&) const override {
    return std::unique_ptr<DeviceEvent>(std::make_unique<PassedEvent>());
  }
  Status record_program(DeviceEvent&) const override { return {}; }
  Status pin(void*, std::size_t) const override { return {Code::unsupported, "the HIP runtime is not asked to pin"}; }
  void unpin(void*) const override {}
  int near_node(const DeviceMemory&) const override { return -1; }
  bool has_kernels(const DeviceMemory&) const override { return false; }

  Status copy(void* to, const void* from, std::size_t bytes) const override {
    const int result = bytes == 0 ? success : functions_.copy(to, from, bytes, copy_default);
    if (result == success) return {};
    const char* name = functions_.error_name(result);
    return {Code::unavailable, "the HIP runtime could not copy " + std::to_string(bytes) +
                                   " bytes: " + (name != nullptr ? name : "error " + std::to_string(result))};
  }

 private:
  Functions functions_;
};

}  // namespace

std::unique_ptr<DeviceDriver> open_hip_driver(void* library) {
  Functions functions;
  const bool complete = find(library, "hipPointerGetAttributes", functions.attributes) &&
                        find(library, "hipMemcpy", functions.copy) &&
                        find(library, "hipGetErrorName", functions.error_name);
  return complete ? std::make_unique<HipDriver>(functions) : nullptr;
}

}  // namespace plait::tl
