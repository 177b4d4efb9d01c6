#include "tl/cuda/cuda_devices.h"

#include <dlfcn.h>

#include <utility>

#include "tl/cuda/cuda_driver.h"

namespace plait::tl {
namespace {

template <class Function>
bool find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<OpenedDevice> open_cuda_device(const std::string& library, int ordinal) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Status(Code::unavailable, "no driver of GPUs: " + std::string(dlerror()));
  int (*initialise)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*use)(void*) = nullptr;
  std::unique_ptr<DeviceDriver> driver = open_cuda_driver(opened);
  if (driver == nullptr || !find_in(opened, "cuInit", initialise) || !find_in(opened, "cuDeviceGetCount", count) ||
      !find_in(opened, "cuDevicePrimaryCtxRetain", retain) || !find_in(opened, "cuCtxSetCurrent", use))
    return Status(Code::unavailable, library + " lacks functions of CUDA's driver");
  int devices = 0;
  if (initialise(0) != 0 || count(&devices) != 0 || devices == 0) return Status(Code::unavailable, "there is no GPU");
  OpenedDevice made{.driver = std::move(driver), .memory = {}};
  made.memory.kind = MemoryKind::device;
  made.memory.device = ordinal % devices;
  if (retain(&made.memory.context, made.memory.device) != 0 || use(made.memory.context) != 0)
    return Status(Code::unavailable, "a GPU gives no context");
  return made;
}

}  // namespace plait::tl
