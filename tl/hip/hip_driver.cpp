#include "tl/hip/hip_driver.h"

#include <dlfcn.h>

#include <string>

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

  bool owns(const void* address) const override {
    Attributes found{};
    return functions_.attributes(&found, address) == success && found.device_address != nullptr &&
           found.host_address == nullptr && found.managed == 0;
  }

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
