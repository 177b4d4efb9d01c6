// Streams that calls borrow.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "core/status.h"
#include "runtime/layer.h"
#include "tl/device_driver.h"

namespace plait::runtime {

// One stream for each direction: devices have a copy engine for each, and in one stream a result would wait for all
// data that are still to come.
struct DeviceStreams {
  // Copies under way in a direction at once: enough for the time for which a rank that shares its core looks at nothing.
  static constexpr std::size_t window = 32;
  static_assert(window <= tl::DeviceStream::most_stores);

  struct Direction {
    std::unique_ptr<tl::DeviceStream> stream;
    std::array<std::unique_ptr<tl::DeviceEvent>, window> events;  // the k-th copy's is k mod window
  };
  const DeviceDriver* driver = nullptr;
  void* context = nullptr;
  Direction in, out;         // from the device, to it
  double bytes_per_ns = 10;  // from the device, as seen so far
};

// From a pool of the process's; calls of one communicator run one after the other, so that each has a pair at most.
// Thread-safe.
Result<std::unique_ptr<DeviceStreams>> borrow_streams(const DeviceDriver& driver, const tl::DeviceMemory& memory);
void give_back(std::unique_ptr<DeviceStreams> streams) noexcept;

}  // namespace plait::runtime
