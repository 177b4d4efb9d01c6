#include "tests/differential/device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_cuda/fake_cuda.h"

namespace plait::test {
namespace {

struct Driver {
  decltype(&cuMemAlloc_v2) allocate = nullptr;
  decltype(&cuMemFree_v2) release = nullptr;
  CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) = nullptr;
  decltype(&fake_cuda_data) data = nullptr;
};
Driver driver;

// The tests' own driver says where the data lie, so that its copies are Plait's alone; a real one copies.
void copy_by_driver(void* to, const void* from, std::size_t bytes) {
  if (driver.copy(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes) == 0) return;
  std::fprintf(stderr, "the device copies nothing\n");
  std::abort();
}

}  // namespace

// A real driver takes longer than a tick of the clock to give out its first memory.
bool load_device(const char* file) {
  constexpr useconds_t tick_us = 20'000;
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  const auto initialise = reinterpret_cast<decltype(&cuInit)>(dlsym(library, "cuInit"));
  const auto retain = reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
  const auto use = reinterpret_cast<decltype(&cuCtxSetCurrent)>(dlsym(library, "cuCtxSetCurrent"));
  driver = {.allocate = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(library, "cuMemAlloc_v2")),
            .release = reinterpret_cast<decltype(&cuMemFree_v2)>(dlsym(library, "cuMemFree_v2")),
            .copy = reinterpret_cast<decltype(driver.copy)>(dlsym(library, "cuMemcpy")),
            .data = reinterpret_cast<decltype(&fake_cuda_data)>(dlsym(library, "fake_cuda_data"))};
  CUcontext context = nullptr;
  if (driver.copy == nullptr && driver.data == nullptr) return false;
  if (initialise(0) != 0 || retain(&context, 0) != 0 || use(context) != 0) return false;
  usleep(tick_us);
  return true;
}

namespace {
std::size_t host_one_in = 2;
}
void set_host_buffers(std::size_t one_in) { host_one_in = one_in; }
std::size_t host_buffers_one_in() { return host_one_in; }

bool device_loaded() { return driver.allocate != nullptr; }

DeviceCopy::DeviceCopy(std::span<std::byte> buffer) : buffer_(buffer) {
  CUdeviceptr made = 0;
  if (driver.allocate(&made, buffer.size()) != 0) {
    std::fprintf(stderr, "no device memory\n");
    std::abort();
  }
  device_ = reinterpret_cast<std::byte*>(made);
  if (driver.data == nullptr)
    copy_by_driver(device_, buffer.data(), buffer.size());
  else
    std::memcpy(driver.data(device_), buffer.data(), buffer.size());
}

DeviceCopy::~DeviceCopy() { driver.release(reinterpret_cast<CUdeviceptr>(device_)); }

void DeviceCopy::bring_back() const {
  if (driver.data == nullptr)
    copy_by_driver(buffer_.data(), device_, buffer_.size());
  else
    std::memcpy(buffer_.data(), driver.data(device_), buffer_.size());
}

}  // namespace plait::test
