#include "tests/fake_cuda/fake_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace {

enum : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_context = 201,
  illegal_address = 700,
};
enum : int { attribute_context = 1, attribute_memory_type = 2, attribute_is_managed = 8, attribute_device = 9 };
enum : unsigned { type_host = 1, type_device = 2 };

struct Block {
  std::size_t bytes = 0;
  std::byte* data = nullptr;  // where the processor finds it
  unsigned type = type_device;
  bool managed = false;
};

struct Driver {
  std::mutex guard;
  std::map<std::uintptr_t, Block> blocks;
  std::atomic<bool> initialised{false};
  std::atomic<long> questions{0}, copies{0}, good_copies{-1};
};

Driver& driver() {
  static auto* made = new Driver;
  return *made;
}

// One device with one context; a thread has a stack of contexts.
CUcontext the_context() { return reinterpret_cast<CUcontext>(std::uintptr_t{0x1000}); }
thread_local std::array<CUcontext, 8> contexts{};
thread_local std::size_t depth = 0;

CUcontext current() { return depth > 0 ? contexts[depth - 1] : nullptr; }

// Of the block that the address lies in. With the driver locked.
const std::pair<const std::uintptr_t, Block>* find(std::uintptr_t address) {
  auto after = driver().blocks.upper_bound(address);
  if (after == driver().blocks.begin()) return nullptr;
  --after;
  return address - after->first < after->second.bytes ? &*after : nullptr;
}

std::byte* data_at(std::uintptr_t address) {
  const auto* found = find(address);
  return found != nullptr ? found->second.data + (address - found->first) : nullptr;
}

CUresult add(std::byte* address, const Block& block, CUdeviceptr* made) {
  const std::scoped_lock lock(driver().guard);
  driver().blocks.emplace(reinterpret_cast<std::uintptr_t>(address), block);
  *made = reinterpret_cast<std::uintptr_t>(address);
  return success;
}

CUresult usable() {
  if (!driver().initialised) return not_initialized;
  return current() != nullptr ? success : invalid_context;
}

CUresult allocate_host(CUdeviceptr* address, std::size_t bytes, bool managed) {
  if (const CUresult state = usable(); state != success) return state;
  auto* data = static_cast<std::byte*>(std::malloc(std::max<std::size_t>(bytes, 1)));
  if (data == nullptr) return out_of_memory;
  return add(data, {.bytes = bytes, .data = data, .type = managed ? type_device : type_host, .managed = managed},
             address);
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  driver().initialised = true;
  return success;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, int device) {
  if (!driver().initialised) return not_initialized;
  *context = the_context();
  return device == 0 ? success : invalid_value;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  depth = context != nullptr ? 1 : 0;
  contexts[0] = context;
  return success;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!driver().initialised) return not_initialized;
  *context = current();
  return success;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (context != the_context() || depth == contexts.size()) return invalid_context;
  contexts[depth++] = context;
  return success;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (depth == 0) return invalid_context;
  *context = contexts[--depth];
  return success;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  if (const CUresult state = usable(); state != success) return state;
  if (bytes == 0) return invalid_value;
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return out_of_memory;
  return add(static_cast<std::byte*>(place), {.bytes = bytes, .data = new std::byte[bytes]}, address);
}

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
  CUdeviceptr made = 0;
  const CUresult result = allocate_host(&made, bytes, false);
  *address = reinterpret_cast<void*>(made);
  return result;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  return allocate_host(address, bytes, true);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::scoped_lock lock(driver().guard);
  const auto found = driver().blocks.find(address);
  if (found == driver().blocks.end()) return invalid_value;
  const Block block = found->second;
  driver().blocks.erase(found);
  if (block.type == type_device && !block.managed) {
    munmap(reinterpret_cast<void*>(address), block.bytes);
    delete[] block.data;
  } else {
    std::free(block.data);
  }
  return success;
}

// As CUDA does: what it does not know of an address is zero.
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr address) {
  ++driver().questions;
  if (!driver().initialised) return not_initialized;
  const std::scoped_lock lock(driver().guard);
  const auto* found = find(address);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case attribute_context:
        *static_cast<CUcontext*>(values[i]) = found != nullptr ? the_context() : nullptr;
        break;
      case attribute_memory_type:
        *static_cast<unsigned*>(values[i]) = found != nullptr ? found->second.type : 0;
        break;
      case attribute_is_managed:
        *static_cast<unsigned*>(values[i]) = found != nullptr && found->second.managed ? 1 : 0;
        break;
      case attribute_device:
        *static_cast<int*>(values[i]) = found != nullptr ? 0 : -2;
        break;
      default:
        return invalid_value;
    }
  }
  return success;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  if (const CUresult state = usable(); state != success) return state;
  ++driver().copies;
  if (driver().good_copies == 0) return illegal_address;
  if (driver().good_copies > 0) --driver().good_copies;
  const std::scoped_lock lock(driver().guard);
  std::byte* target = data_at(to);
  const std::byte* source = data_at(from);
  std::memcpy(target != nullptr ? target : reinterpret_cast<std::byte*>(to),
              source != nullptr ? source : reinterpret_cast<const std::byte*>(from), bytes);
  return success;
}

CUresult cuStreamSynchronize(CUstream) { return usable(); }

CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = result == illegal_address   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == invalid_context ? "CUDA_ERROR_INVALID_CONTEXT"
                                      : nullptr;
  return *name != nullptr ? success : invalid_value;
}

void* fake_cuda_data(const void* device_address) {
  const std::scoped_lock lock(driver().guard);
  return data_at(reinterpret_cast<std::uintptr_t>(device_address));
}

long fake_cuda_questions() { return driver().questions; }
long fake_cuda_copies() { return driver().copies; }
void fake_cuda_fail_after(long copies) { driver().good_copies = copies; }

}  // extern "C"
