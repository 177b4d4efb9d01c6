// The tests' own CUDA driver for ranks that are threads: its device memory is one that no processor may touch.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"
#include "tl/device/device_memory.h"

namespace plait::fused {

class FakeDevice {
 public:
  static FakeDevice& instance() {
    static FakeDevice made;
    return made;
  }

  template <class Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  // The calling thread has the device's context.
  void use() const {
    CUcontext context = nullptr;
    call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  }
  std::byte* data(const void* address) const {
    return static_cast<std::byte*>(call<decltype(fake_cuda_data)>("fake_cuda_data")(address));
  }
  long kernels() const { return call<decltype(fake_cuda_kernels)>("fake_cuda_kernels")(); }
  // As fake_cuda_fail().
  void fail(const char* function, long calls, int result) const {
    call<decltype(fake_cuda_fail)>("fake_cuda_fail")(function, calls, result);
  }

 private:
  FakeDevice() : library_(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    tl::start_device_memory();
    call<decltype(cuInit)>("cuInit")(0);
    tl::look_for_device_driver();
  }
  void* library_;
};

// Memory of the device's, from some bytes into an allocation on.
class DeviceCopy {
 public:
  // `pooled`: no handle of it can be handed on.
  explicit DeviceCopy(std::size_t bytes, std::size_t from = 0, bool pooled = false) : bytes_(bytes) {
    CUdeviceptr made = 0;
    if (pooled)
      FakeDevice::instance().call<decltype(cuMemAllocAsync)>("cuMemAllocAsync")(&made, from + bytes + 1, nullptr);
    else
      FakeDevice::instance().call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&made, from + bytes + 1);
    begin_ = reinterpret_cast<std::byte*>(made);
    place_ = begin_ + from;
  }
  template <class T>
  static DeviceCopy of(const std::vector<T>& list, std::size_t from = 0) {
    DeviceCopy made(list.size() * sizeof(T), from);
    made.write(list.data());
    return made;
  }
  DeviceCopy(DeviceCopy&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), place_(other.place_), bytes_(other.bytes_) {}
  DeviceCopy& operator=(DeviceCopy&&) = delete;
  ~DeviceCopy() {
    if (begin_ == nullptr) return;
    FakeDevice::instance().call<decltype(cuMemFree_v2)>("cuMemFree_v2")(reinterpret_cast<CUdeviceptr>(begin_));
  }

  template <class T = std::byte>
  T* address() const {
    return reinterpret_cast<T*>(place_);
  }
  void write(const void* from) const {
    if (bytes_ > 0) std::memcpy(FakeDevice::instance().data(place_), from, bytes_);
  }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> list(bytes_ / sizeof(T));
    if (bytes_ > 0) std::memcpy(list.data(), FakeDevice::instance().data(place_), bytes_);
    return list;
  }
  void fill(unsigned char with) const { std::memset(FakeDevice::instance().data(place_), with, bytes_); }
  bool is_filled(unsigned char with) const {
    for (const unsigned char byte : read<unsigned char>())
      if (byte != with) return false;
    return true;
  }

 private:
  std::byte *begin_ = nullptr, *place_ = nullptr;
  std::size_t bytes_;
};

}  // namespace plait::fused
