#include "tests/device/cuda.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace plait::test {
namespace {

void check(int outcome, const char* what) {
  if (outcome == 0) return;
  std::fprintf(stderr, "the driver could not %s: error %d\n", what, outcome);
  std::abort();
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

unsigned long long as_number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void load_driver(int argc, char** argv) {
  const char* file = "libcuda.so.1";
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--driver") == 0) file = argv[i + 1];
  static_cast<void>(dlopen(file, RTLD_NOW | RTLD_LOCAL));
}

bool Cuda::open(const char* file, int device, const char*& why) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return why = dlerror(), false;
  int (*initialise)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*use)(void*) = nullptr;
  const bool complete = find(library, "cuInit", initialise) && find(library, "cuDeviceGetCount", count) &&
                        find(library, "cuDevicePrimaryCtxRetain", retain) && find(library, "cuCtxSetCurrent", use) &&
                        find(library, "cuMemAlloc_v2", allocate_) && find(library, "cuMemFree_v2", release_) &&
                        find(library, "cuMemAllocHost_v2", allocate_pinned_) &&
                        find(library, "cuMemFreeHost", release_pinned_) && find(library, "cuMemcpyAsync", copy_) &&
                        find(library, "cuStreamSynchronize", synchronize_);
  if (!complete) return why = "it lacks functions", false;
  if (initialise(0) != 0 || count(&devices_) != 0 || devices_ == 0) return why = "there is no device", false;
  void* context = nullptr;
  check(retain(&context, device % devices_), "give a context");
  check(use(context), "use it");
  return true;
}

void* Cuda::allocate(std::size_t bytes) const {
  unsigned long long address = 0;
  check(allocate_(&address, bytes > 0 ? bytes : 1), "allocate memory of the device");
  return reinterpret_cast<void*>(address);
}
void Cuda::release(void* address) const { check(release_(as_number(address)), "release memory"); }

void* Cuda::allocate_pinned(std::size_t bytes) const {
  void* address = nullptr;
  check(allocate_pinned_(&address, bytes), "allocate pinned memory");
  return address;
}
void Cuda::release_pinned(void* address) const { check(release_pinned_(address), "release pinned memory"); }

void Cuda::copy(void* to, const void* from, std::size_t bytes) const {
  copy_later(to, from, bytes);
  wait();
}
void Cuda::copy_later(void* to, const void* from, std::size_t bytes) const {
  if (bytes > 0) check(copy_(as_number(to), as_number(from), bytes, nullptr), "copy");
}
void Cuda::wait() const { check(synchronize_(nullptr), "wait for copies"); }

}  // namespace plait::test
