// Regions of a request, from what the arguments say. In a header: each prepare_... is one function, as its time shows
// in that of a small call.
#pragma once

#include <cstddef>

#include "runtime/arguments/side.h"
#include "runtime/execution/device_data.h"
#include "runtime/execution/region.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Data that is only moved: it travels as the bytes of its type signature. Sets a fresh region in place: copies of it
// show in the time of a small call.
inline void move_all(Region& region, const void* address, std::size_t count, const Layout& layout) {
  region.address = static_cast<std::byte*>(const_cast<void*>(address));
  region.count = count;
  region.type = &layout;
  region.bytes = count * layout.size;
  region.direct = layout.contiguous;
}

// In whose memory the data lie. The rest of what is known of the region comes first.
inline void find_device(Region& region) {
  if (region.bytes != 0) region.device = device_under(region.address, *region.type);
}

// Whether an address can be that of a region's data. A null one belongs to layouts that hold the addresses themselves.
inline bool is_sound(const Region& region) {
  if (is_in_place(region.address)) return false;
  return region.address != nullptr || !region.direct || region.bytes == 0;
}

// `segments` times the elements. False where the caller must check them.
inline bool describe(Region& region, const Elements& elements, int segments = 1) {
  if (elements.count < 0 || elements.layout == nullptr) return false;
  const std::size_t count = static_cast<std::size_t>(elements.count) * static_cast<std::size_t>(segments);
  move_all(region, elements.address, count, *elements.layout);
  if (!is_sound(region)) return false;
  find_device(region);
  return true;
}

inline const char* unless_empty(std::size_t bytes) { return bytes == 0 ? reasons::no_data : eligible; }

}  // namespace plait::runtime
