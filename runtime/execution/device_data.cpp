#include "runtime/execution/device_data.h"

#include <cstdint>
#include <vector>

#include "runtime/execution/caller.h"
#include "tl/shm/shared_heap.h"

namespace plait::runtime {
namespace {

// A null address may have displacements added all the same (MPI_BOTTOM).
std::byte* moved(const std::byte* address, std::ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + bytes);
}

const DeviceDriver* device_at(const std::byte* address) {
  return SharedHeap::contains(address) ? nullptr : device_of(address);
}

const DeviceDriver* device_under_parts(const std::byte* address, const Layout& layout) {
  const DeviceDriver* first = device_at(moved(address, layout.true_lower_bound));
  if (first != nullptr || address != nullptr || !has_device_driver()) return first;
  for (const ByteRun& run : caller().runs(layout))
    if (const DeviceDriver* found = device_at(moved(address, run.begin)); found != nullptr) return found;
  return nullptr;
}

// Calls `copy` with the place and the length of each run, until one fails.
template <class Copy>
int for_each_run(const DeviceData& data, Copy&& copy) {
  std::vector<ByteRun> runs;
  std::ptrdiff_t extent = 0;
  std::size_t count = data.count;
  if (data.element_bytes != 0 || data.type->contiguous) {
    const std::size_t element = data.element_bytes != 0 ? data.element_bytes : data.type->size;
    runs.push_back({0, element * count});
    count = 1;
  } else {
    runs = caller().runs(*data.type);
    extent = data.type->extent;
  }
  for (std::size_t i = 0; i < count; ++i)
    for (const ByteRun& run : runs)
      if (const Status copied =
              copy(moved(data.address, static_cast<std::ptrdiff_t>(i) * extent + run.begin), run.bytes);
          !copied.ok())
        return caller().code_of(copied);
  return 0;
}

}  // namespace

const DeviceDriver* device_under_other(const std::byte* address, const Layout& layout) {
  return layout.contiguous ? device_at(address) : device_under_parts(address, layout);
}

tl::DeviceMemory memory_of(const DeviceData& data) {
  const tl::DeviceMemory first = data.driver->memory_at(moved(data.address, data.type->true_lower_bound));
  if (first.kind == tl::MemoryKind::device || data.type->contiguous) return first;
  for (const ByteRun& run : caller().runs(*data.type))
    if (const tl::DeviceMemory found = data.driver->memory_at(moved(data.address, run.begin));
        found.kind == tl::MemoryKind::device)
      return found;
  return first;
}

void start_view(DeviceView& view, const DeviceData& data) {
  const bool dense = data.element_bytes != 0 || data.type->contiguous;
  const std::size_t bytes = data.element_bytes != 0 ? data.element_bytes : data.type->size;
  std::vector<ByteRun> runs;
  if (!dense) runs = caller().runs(*data.type);
  view.start(*data.driver, memory_of(data), {.bytes = bytes, .extent = data.type->extent, .runs = runs});
}

int from_device(const DeviceData& data, std::byte* packed) {
  return for_each_run(data, [&](std::byte* place, std::size_t bytes) {
    const Status copied = data.driver->copy(packed, place, bytes);
    packed += bytes;
    return copied;
  });
}

int to_device(const DeviceData& data, const std::byte* packed) {
  return for_each_run(data, [&](std::byte* place, std::size_t bytes) {
    const Status copied = data.driver->copy(place, packed, bytes);
    packed += bytes;
    return copied;
  });
}

}  // namespace plait::runtime
