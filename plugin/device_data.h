// Data of a call in memory of a device (tl/device_memory.h): the processor works on copies. Where a rank's data lie is
// its own affair; the others never know it (design rule 1).
#pragma once

#include <cstddef>

#include "plugin/datatype.h"
#include "plugin/layer.h"
#include "tl/device_memory.h"

namespace plait::plugin {

struct DeviceData {
  const DeviceDriver* driver = nullptr;
  std::byte* address = nullptr;  // as the caller gave it; may be MPI_BOTTOM
  std::size_t count = 0;         // elements
  const Datatype* type = nullptr;
  std::size_t element_bytes = 0;  // that lie one after the other; 0: as the type says
};

// Whose memory an element at `address` lies in; nullptr: the processor's. A type that holds addresses itself may have
// some data in each: then the driver's, which copies both.
const DeviceDriver* device_under(const std::byte* address, const Datatype& type);

// Both return an MPI error code. They throw std::bad_alloc.
int from_device(const DeviceData& data, std::byte* packed);
int to_device(const DeviceData& data, const std::byte* packed);

}  // namespace plait::plugin
