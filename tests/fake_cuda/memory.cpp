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

// Over several blocks, where they lie side by side for the processor, too.
bool is_reached(CUdeviceptr address, unsigned long long bytes, unsigned long long unit) {
  if (address % unit != 0) return false;
  const auto* found = find(address);
  while (found != nullptr && found->second.accessible) {
    const std::uintptr_t end = found->first + found->second.bytes;
    if (address + bytes <= end) return true;
    const std::byte* data_end = found->second.data + found->second.bytes;
    found = find(end);
    if (found != nullptr && found->second.data != data_end) return false;
  }
  return false;
}

Engine engine_between(CUdeviceptr to, CUdeviceptr from) {
  const auto on_device = [](CUdeviceptr address) {
    const auto* found = find(address);
    return found != nullptr && found->second.type == type_device && !found->second.managed;
  };
  if (on_device(from) && on_device(to)) return Engine::between_devices;
  if (!on_device(from) && !on_device(to)) return Engine::none;
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

// Where the program may look, and where the driver does.
CUresult map_twice(int file, std::size_t bytes, CUdeviceptr* address) {
  const std::size_t whole = rounded(bytes, page_bytes);
  void* place = mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0);
  void* data = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED || data == MAP_FAILED) return out_of_memory;
  add(reinterpret_cast<std::uintptr_t>(place), {.bytes = bytes, .data = static_cast<std::byte*>(data), .file = file});
  driver().device += whole;
  *address = reinterpret_cast<CUdeviceptr>(place);
  return success;
}

void unmap_twice(std::uintptr_t address, const Block& block) {
  const std::size_t whole = rounded(block.bytes, page_bytes);
  munmap(reinterpret_cast<void*>(address), whole);
  munmap(block.data, whole);
  driver().device -= whole;
}

// ---- Reservations ----

void* reserve(std::size_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place != MAP_FAILED ? place : nullptr;
}

bool reserve_again(void* place, std::size_t bytes) {
  return mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

const std::pair<const std::uintptr_t, Reservation>* reservation_of(std::uintptr_t address, std::size_t bytes) {
  auto after = driver().reservations.upper_bound(address);
  if (after == driver().reservations.begin()) return nullptr;
  --after;
  return address - after->first + bytes <= after->second.bytes ? &*after : nullptr;
}

bool is_free(std::uintptr_t address, std::size_t bytes) {
  const auto next = driver().blocks.lower_bound(address);
  return find(address) == nullptr && (next == driver().blocks.end() || next->first >= address + bytes);
}

int file_of(unsigned long long handle) { return static_cast<int>(handle) - 1; }

// A handle is a file, and one more, so that none is 0.
CUresult handle_on(int file, unsigned long long* handle) {
  const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  *handle = static_cast<unsigned long long>(copy + 1);
  return copy >= 0 ? success : invalid_value;
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
  std::uintptr_t address;
};

// Of memory that was freed since, as CUDA may take it for that. Not by its file: others soon have the same number.
bool is_of_same_place(const CUipcMemHandle& opened, const IpcHandle& wanted) {
  IpcHandle content{};
  std::memcpy(&content, opened.reserved, sizeof content);
  return content.process == wanted.process && content.address == wanted.address && content.bytes == wanted.bytes;
}

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
  return map_twice(file, bytes, address);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemAllocAsync"); state != success) return state;
  const CUresult made = cuMemAlloc_v2(address, bytes);
  if (made == success) driver().blocks.at(*address).pooled = true;
  return made;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree_v2(address); }

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
        if (found != nullptr && !found->second.pooled) cuDevicePrimaryCtxRetain(static_cast<CUcontext*>(values[i]), 0);
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
  if (found == nullptr || found->second.file < 0 || found->second.reserved || found->second.pooled)
    return invalid_value;
  const IpcHandle content{getpid(), found->second.file, found->second.bytes, found->first};
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
    if (block.opened > 0 && is_of_same_place(block.handle, content)) {
      ++block.opened;
      *address = begin;
      return success;
    }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", content.process, content.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return invalid_handle;
  const CUresult made = map_twice(file, content.bytes, address);
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

CUresult cuMemCreate(unsigned long long* handle, std::size_t bytes, const void*, unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemCreate"); state != success) return state;
  if (bytes == 0 || bytes % granule_bytes != 0) return invalid_value;
  const int file = make_file(bytes);
  *handle = static_cast<unsigned long long>(file + 1);
  return file >= 0 ? success : out_of_memory;
}

CUresult cuMemRelease(unsigned long long handle) {
  const std::scoped_lock lock(driver().guard);
  driver().imported.erase(handle);
  return close(file_of(handle)) == 0 ? success : invalid_value;
}

CUresult cuMemRetainAllocationHandle(unsigned long long* handle, void* address) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemRetainAllocationHandle"); state != success) return state;
  const auto* found = find(reinterpret_cast<std::uintptr_t>(address));
  if (found == nullptr || !found->second.reserved) return invalid_value;
  return handle_on(found->second.file, handle);
}

CUresult cuMemExportToShareableHandle(void* file, unsigned long long handle, int, unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemExportToShareableHandle"); state != success) return state;
  const int copy = fcntl(file_of(handle), F_DUPFD_CLOEXEC, 0);
  std::memcpy(file, &copy, sizeof copy);
  return copy >= 0 ? success : invalid_value;
}

CUresult cuMemImportFromShareableHandle(unsigned long long* handle, void* file, int) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemImportFromShareableHandle"); state != success) return state;
  const CUresult made = handle_on(static_cast<int>(reinterpret_cast<std::intptr_t>(file)), handle);
  if (made == success) driver().imported.insert(*handle);
  return made;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemAddressReserve"); state != success) return state;
  void *place = reserve(bytes), *data = reserve(bytes);
  if (place == nullptr || data == nullptr) return out_of_memory;
  driver().reservations[reinterpret_cast<std::uintptr_t>(place)] = {bytes, static_cast<std::byte*>(data)};
  *address = reinterpret_cast<CUdeviceptr>(place);
  return success;
}

// As CUDA's: only what nothing is mapped in any more, and as it was reserved.
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const std::scoped_lock lock(driver().guard);
  const auto found = driver().reservations.find(static_cast<std::uintptr_t>(address));
  if (found == driver().reservations.end() || found->second.bytes != bytes || !is_free(address, bytes))
    return invalid_value;
  munmap(reinterpret_cast<void*>(address), bytes);
  munmap(found->second.data, bytes);
  driver().reservations.erase(found);
  return success;
}

// The memory stays as long as it is mapped, whether or not the handle is released.
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, unsigned long long handle,
                  unsigned long long) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemMap"); state != success) return state;
  const auto* within = reservation_of(address, bytes);
  if (within == nullptr) return invalid_value;
  if (!is_free(address, bytes)) return already_mapped;
  const int file = fcntl(file_of(handle), F_DUPFD_CLOEXEC, 0);
  if (file < 0) return invalid_value;
  std::byte* data = within->second.data + (address - within->first);
  const std::size_t whole = rounded(bytes, page_bytes);
  const auto map = [&](void* place, int access) {
    return mmap(place, whole, access, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) != MAP_FAILED;
  };
  if (!map(reinterpret_cast<void*>(address), PROT_NONE) || !map(data, PROT_READ | PROT_WRITE)) return out_of_memory;
  const bool imported = driver().imported.contains(handle);
  add(address,
      {.bytes = bytes, .data = data, .file = file, .reserved = true, .accessible = false, .imported = imported});
  driver().device += whole;
  driver().mapped += imported ? 1 : 0;
  return success;
}

// One mapping at a time.
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::scoped_lock lock(driver().guard);
  run_until(&driver().default_stream, driver().default_stream.given);
  const auto found = driver().blocks.find(address);
  if (found == driver().blocks.end() || !found->second.reserved || found->second.bytes != bytes) return invalid_value;
  const std::size_t whole = rounded(bytes, page_bytes);
  reserve_again(reinterpret_cast<void*>(address), whole);
  reserve_again(found->second.data, whole);
  driver().device -= whole;
  driver().mapped -= found->second.imported ? 1 : 0;
  close(found->second.file);
  driver().blocks.erase(found);
  return success;
}

// CUmemAccessDesc: whose access, and which.
CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const void* access, std::size_t count) {
  struct Access {
    int place_type, place, flags;
  } wanted{};
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuMemSetAccess"); state != success) return state;
  if (access == nullptr || count != 1) return invalid_value;
  constexpr int of_device = 1, read_and_write = 3;
  std::memcpy(&wanted, access, sizeof wanted);
  if (wanted.place_type != of_device || wanted.place != 0 || wanted.flags != read_and_write) return invalid_value;
  std::uintptr_t at = address;
  for (auto* found = find(at); found != nullptr && at < address + bytes; found = find(at)) {
    driver().blocks[found->first].accessible = true;
    at = found->first + found->second.bytes;
  }
  return at >= address + bytes ? success : invalid_value;
}

void* fake_cuda_data(const void* device_address) {
  const std::scoped_lock lock(driver().guard);
  const auto* found = find(reinterpret_cast<std::uintptr_t>(device_address));
  if (found == nullptr) return nullptr;
  return found->second.data + (reinterpret_cast<std::uintptr_t>(device_address) - found->first);
}

}  // extern "C"
