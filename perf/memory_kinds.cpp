// What a call with two buffers pays for asking whose memory they are in: before a driver is in the process, after one
// is loaded, and then with UCX, which puts functions of its own in the place of the C library's for memory. Usage:
// memory_kinds DRIVER, as build/release/tests/fake_cuda/libcuda.so.1
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tl/device/device_memory.h"
#include "tl/trace.h"

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;

// Of 21 samples the one in the middle, nanoseconds a call.
double time_of(const void* send, const void* receive) {
  constexpr int calls = 100'000, samples = 21;
  std::vector<double> all;
  for (int sample = 0; sample < samples; ++sample) {
    const std::uint64_t begin_ns = plait::tl::monotonic_ns();
    for (int call = 0; call < calls; ++call) {
      const void* one = send;
      const void* other = receive;
      asm volatile("" : "+r"(one), "+r"(other));
      const auto* found = plait::tl::device_of(one);
      const auto* second = plait::tl::device_of(other);
      asm volatile("" : : "r"(found), "r"(second));
    }
    all.push_back(static_cast<double>(plait::tl::monotonic_ns() - begin_ns) / calls);
  }
  std::ranges::sort(all);
  return all[samples / 2];
}

void* map() { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: memory_kinds DRIVER\n");
    return 2;
  }
  plait::tl::start_device_memory();
  const std::vector<char> first(1000), second(1000);
  void* mapped = map();
  void* other = map();
  std::printf("nanoseconds a call with two buffers\n");
  std::printf("no driver, count of libraries not known yet: heap %.1f, mapped %.1f\n",
              time_of(first.data(), second.data()), time_of(mapped, other));
  dlopen("libz.so.1", RTLD_NOW);  // as any program's start loads some
  plait::tl::look_for_device_driver();
  std::printf("no driver: heap %.1f, mapped %.1f%s\n", time_of(first.data(), second.data()), time_of(mapped, other),
              plait::tl::surely_no_driver() ? "" : " (the C library's count was not found)");
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "memory_kinds: %s\n", dlerror());
    return 1;
  }
  void* context = nullptr;
  unsigned long long device = 0, device_too = 0;
  const bool usable = find<int(unsigned)>(library, "cuInit")(0) == 0 &&
                      find<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0) == 0 &&
                      find<int(void*)>(library, "cuCtxSetCurrent")(context) == 0 &&
                      find<int(unsigned long long*, std::size_t)>(library, "cuMemAlloc_v2")(&device, bytes) == 0 &&
                      find<int(unsigned long long*, std::size_t)>(library, "cuMemAlloc_v2")(&device_too, bytes) == 0;
  if (!usable || !plait::tl::look_for_device_driver()) {
    std::fprintf(stderr, "memory_kinds: the driver cannot be used\n");
    return 1;
  }
  std::printf("driver: heap %.1f, mapped %.1f, device %.1f\n", time_of(first.data(), second.data()),
              time_of(mapped, other), time_of(reinterpret_cast<void*>(device), reinterpret_cast<void*>(device_too)));
  if (dlopen("libucp.so.0", RTLD_NOW) != nullptr)
    std::printf("driver and UCX: heap %.1f, mapped %.1f\n", time_of(first.data(), second.data()),
                time_of(mapped, other));
  return 0;
}
