// Data of a call in memory of a device (tl/device/device_memory.h): the processor works on copies. Where a rank's data
// lie is its own affair; the others never know it (design rule 1).
#pragma once

#include <cstddef>

#include "runtime/device/device_view.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"
#include "tl/device/device_memory.h"

namespace plait::runtime {

struct DeviceData {
  const DeviceDriver* driver = nullptr;
  std::byte* address = nullptr;  // as the caller gave it; may be null, where the layout holds addresses itself
  std::size_t count = 0;         // elements
  const Layout* type = nullptr;
  std::size_t element_bytes = 0;  // that lie one after the other; 0: as the layout says
};

// Whose memory an element at `address` lies in; nullptr: the processor's. A layout that holds addresses itself may have
// some data in each: then the driver's, which copies both.
const DeviceDriver* device_under_other(const std::byte* address, const Layout& layout);
inline const DeviceDriver* device_under(const std::byte* address, const Layout& layout) {
  const bool processors = tl::surely_no_driver() || (layout.contiguous && tl::is_processors(address));
  return processors ? nullptr : device_under_other(address, layout);
}

// What the driver says of the first of the data that is in its memory.
tl::DeviceMemory memory_of(const DeviceData& data);
// Where they lie, as a view. A layout of which more parts lie apart has them added.
void start_view(DeviceView& view, const DeviceData& data);

// All at once, while the caller waits. Both return a code of the caller's. They throw std::bad_alloc.
int from_device(const DeviceData& data, std::byte* packed);
int to_device(const DeviceData& data, const std::byte* packed);

}  // namespace plait::runtime
