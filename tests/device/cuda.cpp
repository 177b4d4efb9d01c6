#include "tests/device/cuda.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

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
  device_ = device % devices_;
  find_pieces(library);
  check(retain(&context, device_), "give a context");
  check(use(context), "use it");
  return true;
}

void* Cuda::allocate(std::size_t bytes) const {
  unsigned long long address = 0;
  check(allocate_(&address, bytes > 0 ? bytes : 1), "allocate memory of the device");
  return reinterpret_cast<void*>(address);
}
void Cuda::release(void* address) const { check(release_(as_number(address)), "release memory"); }

void Cuda::find_pieces(void* library) {
  const bool complete = find(library, "cuMemCreate", make_piece_) && find(library, "cuMemRelease", let_piece_go_) &&
                        find(library, "cuMemAddressReserve", reserve_) &&
                        find(library, "cuMemAddressFree", give_back_) && find(library, "cuMemMap", map_) &&
                        find(library, "cuMemUnmap", unmap_) && find(library, "cuMemSetAccess", allow_) &&
                        find(library, "cuMemGetAllocationGranularity", piece_unit_);
  if (!complete) piece_unit_ = nullptr;
}

std::size_t Cuda::piece_bytes() const {
  const MemoryKind kind{.device = device_};
  std::size_t unit = 0;
  check(piece_unit_(&unit, &kind, 0), "say how long pieces are");
  return unit;
}

namespace {

// The first piece ends, and the second one begins, where so many bytes of the memory are over.
constexpr std::size_t before_border = 4096;

struct Pieces {
  Pieces(std::size_t unit, std::size_t bytes)
      : first(unit), second(bytes > before_border ? (bytes - before_border + unit - 1) / unit * unit : unit) {}
  std::size_t first, second;
};

}  // namespace

void* Cuda::allocate_in_pieces(std::size_t bytes) const {
  if (piece_unit_ == nullptr) return nullptr;
  const Pieces pieces(piece_bytes(), bytes);
  const MemoryKind kind{.device = device_};
  const Access access{.device = device_};
  unsigned long long address = 0;
  check(reserve_(&address, pieces.first + pieces.second, 0, 0, 0), "reserve addresses");
  for (const auto& [at, length] : {std::pair{address, pieces.first}, {address + pieces.first, pieces.second}}) {
    unsigned long long handle = 0;
    check(make_piece_(&handle, length, &kind, 0), "make a piece of memory");
    check(map_(at, length, 0, handle, 0), "map it");
    check(let_piece_go_(handle), "let it go");
  }
  check(allow_(address, pieces.first + pieces.second, &access, 1), "allow access");
  return reinterpret_cast<void*>(address + pieces.first - before_border);
}

void Cuda::release_pieces(void* memory, std::size_t bytes) const {
  const Pieces pieces(piece_bytes(), bytes);
  const unsigned long long border = as_number(memory) + before_border, address = border - pieces.first;
  wait();
  check(unmap_(address, pieces.first), "unmap a piece");
  check(unmap_(border, pieces.second), "unmap a piece");
  check(give_back_(address, pieces.first + pieces.second), "give addresses back");
}

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
