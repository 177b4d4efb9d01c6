// Addresses and what lies there.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/fake_cuda/state.h"

namespace fake {

const std::pair<const std::uintptr_t, Block>* find(std::uintptr_t address) {
  auto after = driver().blocks.upper_bound(address);
  if (after == driver().blocks.begin()) return nullptr;
  --after;
  return address - after->first < after->second.bytes ? &*after : nullptr;
}

std::byte* reach(CUdeviceptr address) {
  const auto* found = find(address);
  return found != nullptr ? found->second.data + (address - found->first) : reinterpret_cast<std::byte*>(address);
}

bool is_reached(CUdeviceptr address, unsigned long long bytes, unsigned long long unit) {
  const auto* found = find(address);
  return found != nullptr && address - found->first + bytes <= found->second.bytes && address % unit == 0;
}

Engine engine_between(CUdeviceptr to, CUdeviceptr from) {
  const auto on_device = [](CUdeviceptr address) {
    const auto* found = find(address);
    return found != nullptr && found->second.type == type_device && !found->second.managed;
  };
  if (on_device(from) == on_device(to)) return Engine::none;
  return on_device(from) ? Engine::from_device : Engine::to_device;
}

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t granule_bytes = 64 * 1024;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

enum : int {
  attribute_context = 1,
  attribute_memory_type = 2,
  attribute_buffer_id = 7,
  attribute_is_managed = 8,
  attribute_device = 9,
  attribute_range_begin = 11,
  attribute_range_bytes = 12,
};

void add(std::uintptr_t address, Block block) {
  block.number = ++driver().last_number;
  driver().blocks.emplace(address, block);
}

int make_file(std::size_t bytes) {
  const int file = memfd_create("fake device memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

// Where the program may look, and where the driver does. `wanted`: an address that is reserved; nullptr: any.
CUresult map_twice(int file, std::size_t bytes, off_t offset, void* wanted, CUdeviceptr* address) {
  const std::size_t whole = rounded(bytes, page_bytes);
  const int fixed = wanted != nullptr ? MAP_FIXED : 0;
  void* place = mmap(wanted, whole, PROT_NONE, MAP_SHARED | fixed, file, offset);
  void* data = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
  if (place == MAP_FAILED || data == MAP_FAILED) return out_of_memory;
  add(reinterpret_cast<std::uintptr_t>(place),
      {.bytes = bytes, .data = static_cast<std::byte*>(data), .file = file, .reserved = wanted != nullptr});
  driver().device += whole;
  *address = reinterpret_cast<CUdeviceptr>(place);
  return success;
}

void unmap_twice(std::uintptr_t address, const Block& block) {
  const std::size_t whole = rounded(block.bytes, page_bytes);
  if (block.reserved)
    mmap(reinterpret_cast<void*>(address), whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
         -1, 0);
  else
    munmap(reinterpret_cast<void*>(address), whole);
  munmap(block.data, whole);
  driver().device -= whole;
}

CUresult allocate_host(void** address, std::size_t bytes, bool managed) {
  if (!managed && driver().pinned + bytes > driver().settings.most_pinned) return out_of_memory;
  void* data = std::aligned_alloc(page_bytes, rounded(std::max<std::size_t>(bytes, 1), page_bytes));
  if (data == nullptr) return out_of_memory;
  if (!managed) driver().pinned += bytes;
  add(reinterpret_cast<std::uintptr_t>(data), {.bytes = bytes,
                                               .data = static_cast<std::byte*>(data),
                                               .type = managed ? type_device : type_host,
                                               .managed = managed});
  *address = data;
  return success;
}

struct IpcHandle {
  pid_t process;
  int file;
  std::size_t bytes;
};

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemAlloc_v2"); state != success) return state;
  if (bytes == 0) return invalid_value;
  if (driver().device + bytes > driver().settings.most_device) return out_of_memory;
  const int file = make_file(rounded(bytes, page_bytes));
  if (file < 0) return out_of_memory;
  return map_twice(file, bytes, 0, nullptr, address);
}

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemAllocHost_v2"); state != success) return state;
  return allocate_host(address, bytes, false);
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemAllocManaged"); state != success) return state;
  void* made = nullptr;
  const CUresult result = allocate_host(&made, bytes, true);
  *address = reinterpret_cast<CUdeviceptr>(made);
  return result;
}

// As CUDA's, it waits for what was given to the device before.
CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::scoped_lock lock(driver().guard);
  run_until(&driver().default_stream, driver().default_stream.given);
  const auto found = driver().blocks.find(address);
  if (found == driver().blocks.end()) return invalid_value;
  const Block block = found->second;
  driver().blocks.erase(found);
  if (block.type == type_device && !block.managed) {
    unmap_twice(address, block);
    close(block.file);
  } else {
    std::free(block.data);
  }
  return success;
}

CUresult cuMemFreeHost(void* address) {
  const std::scoped_lock lock(driver().guard);
  const auto* found = find(reinterpret_cast<std::uintptr_t>(address));
  if (found == nullptr) return invalid_value;
  driver().pinned -= found->second.bytes;
  return cuMemFree_v2(reinterpret_cast<CUdeviceptr>(address));
}

CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemHostRegister_v2"); state != success) return state;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (find(begin) != nullptr || find(begin + bytes - 1) != nullptr) return already_registered;
  if (driver().pinned + bytes > driver().settings.most_pinned) return out_of_memory;
  driver().pinned += bytes;
  add(begin, {.bytes = bytes, .data = static_cast<std::byte*>(address), .type = type_host, .registered = true});
  return success;
}

CUresult cuMemHostUnregister(void* address) {
  const std::scoped_lock lock(driver().guard);
  const auto found = driver().blocks.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == driver().blocks.end() || !found->second.registered) return not_registered;
  driver().pinned -= found->second.bytes;
  driver().blocks.erase(found);
  return success;
}

// As CUDA does: what it does not know of an address is zero.
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr address) {
  const std::scoped_lock lock(driver().guard);
  ++driver().questions;
  if (!driver().initialised) return not_initialized;
  const auto* found = find(address);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case attribute_context:
        *static_cast<CUcontext*>(values[i]) = nullptr;
        if (found != nullptr) cuDevicePrimaryCtxRetain(static_cast<CUcontext*>(values[i]), 0);
        break;
      case attribute_memory_type:
        *static_cast<unsigned*>(values[i]) = found != nullptr ? found->second.type : 0;
        break;
      case attribute_buffer_id:
        *static_cast<unsigned long long*>(values[i]) = found != nullptr ? found->second.number : 0;
        break;
      case attribute_is_managed:
        *static_cast<unsigned char*>(values[i]) = found != nullptr && found->second.managed ? 1 : 0;
        break;
      case attribute_device:
        *static_cast<int*>(values[i]) = found != nullptr ? 0 : -2;
        break;
      case attribute_range_begin:
        *static_cast<CUdeviceptr*>(values[i]) = found != nullptr ? found->first : 0;
        break;
      case attribute_range_bytes:
        *static_cast<std::size_t*>(values[i]) = found != nullptr ? found->second.bytes : 0;
        break;
      default:
        return invalid_value;
    }
  }
  return success;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuIpcGetMemHandle"); state != success) return state;
  const auto* found = find(address);
  if (found == nullptr || found->second.file < 0 || found->second.reserved) return invalid_value;
  const IpcHandle content{getpid(), found->second.file, found->second.bytes};
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return success;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuIpcOpenMemHandle_v2"); state != success) return state;
  IpcHandle content{};
  std::memcpy(&content, handle.reserved, sizeof content);
  if (content.process == getpid()) return invalid_context;  // as CUDA: not in the process that made it
  for (auto& [begin, block] : driver().blocks)
    if (block.opened > 0 && std::memcmp(&block.handle, &handle, sizeof handle) == 0) {
      ++block.opened;
      *address = begin;
      return success;
    }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content.process, content.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return invalid_handle;
  const CUresult made = map_twice(file, content.bytes, 0, nullptr, address);
  if (made != success) return made;
  Block& block = driver().blocks.find(static_cast<std::uintptr_t>(*address))->second;
  block.opened = 1;
  block.handle = handle;
  ++driver().mapped;
  return success;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  const std::scoped_lock lock(driver().guard);
  const auto found = driver().blocks.find(static_cast<std::uintptr_t>(address));
  if (found == driver().blocks.end() || found->second.opened == 0) return invalid_value;
  if (--found->second.opened > 0) return success;
  --driver().mapped;
  return cuMemFree_v2(address);
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const void*, int) {
  *bytes = granule_bytes;
  return success;
}

// A handle is a file, and one more, so that none is 0.
CUresult cuMemCreate(unsigned long long* handle, std::size_t bytes, const void*, unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemCreate"); state != success) return state;
  if (bytes == 0 || bytes % granule_bytes != 0) return invalid_value;
  const int file = make_file(bytes);
  *handle = static_cast<unsigned long long>(file + 1);
  return file >= 0 ? success : out_of_memory;
}

CUresult cuMemRelease(unsigned long long handle) {
  return close(static_cast<int>(handle) - 1) == 0 ? success : invalid_value;
}

CUresult cuMemExportToShareableHandle(void* file, unsigned long long handle, int, unsigned long long) {
  const int copy = fcntl(static_cast<int>(handle) - 1, F_DUPFD_CLOEXEC, 0);
  std::memcpy(file, &copy, sizeof copy);
  return copy >= 0 ? success : invalid_value;
}

CUresult cuMemImportFromShareableHandle(unsigned long long* handle, void* file, int) {
  const int copy = fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(file)), F_DUPFD_CLOEXEC, 0);
  *handle = static_cast<unsigned long long>(copy + 1);
  return copy >= 0 ? success : invalid_value;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = reinterpret_cast<CUdeviceptr>(place);
  return place != MAP_FAILED ? success : out_of_memory;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? success : invalid_value;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, unsigned long long handle,
                  unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (find(address) != nullptr) return already_mapped;
  CUdeviceptr made = 0;
  return map_twice(static_cast<int>(handle) - 1, bytes, static_cast<off_t>(offset), reinterpret_cast<void*>(address),
                   &made);
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t) {
  const std::scoped_lock lock(driver().guard);
  const auto found = driver().blocks.find(address);
  if (found == driver().blocks.end() || !found->second.reserved) return invalid_value;
  unmap_twice(address, found->second);
  driver().blocks.erase(found);
  return success;
}

CUresult cuMemSetAccess(CUdeviceptr, std::size_t, const void*, std::size_t) { return success; }

void* fake_cuda_data(const void* device_address) {
  const std::scoped_lock lock(driver().guard);
  const auto* found = find(reinterpret_cast<std::uintptr_t>(device_address));
  if (found == nullptr) return nullptr;
  return found->second.data + (reinterpret_cast<std::uintptr_t>(device_address) - found->first);
}

}  // extern "C"
