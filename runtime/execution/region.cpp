#include "runtime/execution/region.h"

#include "core/work_team.h"
#include "runtime/execution/device_data.h"
#include "runtime/execution/elements.h"

namespace plait::runtime {
namespace {

template <class Move>
int for_each_segment(const Region& region, Move&& move) {
  if (region.segment_displacements == nullptr) return move(region.address, region.count, std::size_t{0});
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  std::size_t offset = 0;
  for (std::size_t segment = 0; segment < static_cast<std::size_t>(region.segments); ++segment) {
    const std::size_t count = region.segment_count(segment);
    std::byte* address = region.address + region.type->extent * region.segment_displacement(segment);
    if (count > 0)
      if (const int code = move(address, count, offset); code != 0) return code;
    offset += count * element;
  }
  return 0;
}

DeviceData device_data(const Region& region, std::byte* address, std::size_t count) {
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  return {.driver = region.device,
          .address = address,
          .count = count,
          .type = region.type,
          .element_bytes = region.direct ? element : 0};
}

// The first that is not empty says it for all.
std::byte* first_address(const Region& region) {
  if (region.segment_displacements == nullptr) return region.address;
  for (std::size_t segment = 0; segment < static_cast<std::size_t>(region.segments); ++segment)
    if (region.segment_count(segment) > 0)
      return region.address + region.type->extent * region.segment_displacement(segment);
  return region.address;
}

}  // namespace

void view(const Region& region, DeviceView& view) {
  start_view(view, device_data(region, first_address(region), region.count));
  static_cast<void>(for_each_segment(region, [&](std::byte* address, std::size_t count, std::size_t) {
    view.add(address, count);
    return 0;
  }));
}

tl::DeviceMemory memory_of(const Region& region) {
  return memory_of(device_data(region, first_address(region), region.count));
}

int pack(const Region& region, std::byte* packed) {
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  return for_each_segment(region, [&](std::byte* address, std::size_t count, std::size_t offset) {
    if (region.device != nullptr) return from_device(device_data(region, address, count), packed + offset);
    if (!region.direct) return pack_elements(address, count, *region.type, packed + offset);
    shared_copy(packed + offset, address, count * element);
    return 0;
  });
}

int unpack(const Region& region, const std::byte* packed) {
  const std::size_t element = region.count > 0 ? region.bytes / region.count : 0;
  return for_each_segment(region, [&](std::byte* address, std::size_t count, std::size_t offset) {
    if (region.device != nullptr) return to_device(device_data(region, address, count), packed + offset);
    if (!region.direct) return unpack_elements(address, count, *region.type, packed + offset);
    shared_copy(address, packed + offset, count * element);
    return 0;
  });
}

}  // namespace plait::runtime
