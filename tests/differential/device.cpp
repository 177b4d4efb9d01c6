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
  decltype(&cuMemAllocHost_v2) allocate_pinned = nullptr;
  decltype(&cuMemAllocManaged) allocate_managed = nullptr;
  decltype(&cuMemFreeHost) release_pinned = nullptr;
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
            .allocate_pinned = reinterpret_cast<decltype(&cuMemAllocHost_v2)>(dlsym(library, "cuMemAllocHost_v2")),
            .allocate_managed = reinterpret_cast<decltype(&cuMemAllocManaged)>(dlsym(library, "cuMemAllocManaged")),
            .release_pinned = reinterpret_cast<decltype(&cuMemFreeHost)>(dlsym(library, "cuMemFreeHost")),
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
  constexpr unsigned of_all_devices = 1;  // CU_MEM_ATTACH_GLOBAL
  static unsigned made_so_far = 0;
  const unsigned turn = made_so_far++ % 16;
  kind_ = turn == 7 ? Kind::pinned : turn == 15 ? Kind::managed : Kind::device;
  CUdeviceptr made = 0;
  void* here = nullptr;
  // Where the test allows none to be pinned it is on the device.
  if (kind_ == Kind::pinned && driver.allocate_pinned(&here, buffer.size()) != 0) kind_ = Kind::device;
  const int refused = kind_ == Kind::device    ? driver.allocate(&made, buffer.size())
                      : kind_ == Kind::managed ? driver.allocate_managed(&made, buffer.size(), of_all_devices)
                                               : 0;
  if (refused != 0) {
    std::fprintf(stderr, "no device memory\n");
    std::abort();
  }
  device_ = kind_ == Kind::pinned ? static_cast<std::byte*>(here) : reinterpret_cast<std::byte*>(made);
  if (driver.data == nullptr)
    copy_by_driver(device_, buffer.data(), buffer.size());
  else
    std::memcpy(driver.data(device_), buffer.data(), buffer.size());
}

DeviceCopy::~DeviceCopy() {
  if (kind_ == Kind::pinned)
    driver.release_pinned(device_);
  else
    driver.release(reinterpret_cast<CUdeviceptr>(device_));
}

void DeviceCopy::bring_back() const {
  if (driver.data == nullptr)
    copy_by_driver(buffer_.data(), device_, buffer_.size());
  else
    std::memcpy(buffer_.data(), driver.data(device_), buffer_.size());
}

}  // namespace plait::test
