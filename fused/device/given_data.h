// What a run on a device is given, where the device reads it: its own memory, or pinned memory of the processor's; of
// other memory a copy that is pinned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/plan_data.h"
#include "fused/layer.h"

namespace plait::fused {

class GivenData {
 public:
  // Before the first piece of a run.
  void begin() {
    next_ = 0;
    status_ = {};
  }
  // nullptr where it cannot be read; status() says why. Piece by piece in the order of the calls.
  template <class T>
  const T* bring(const DeviceGround& ground, const T* place, std::int64_t count) {
    if (place == nullptr || count <= 0) return place;
    return reinterpret_cast<const T*>(
        bring_bytes(ground, reinterpret_cast<const std::byte*>(place), bytes_of_numbers<T>(count), alignof(T)));
  }
  const Status& status() const { return status_; }

 private:
  const std::byte* bring_bytes(const DeviceGround& ground, const std::byte* place, std::size_t bytes, std::size_t unit);

  std::vector<std::unique_ptr<PinnedBytes>> copies_;
  std::size_t next_ = 0;
  Status status_;
};

// One list that kernels read over and over: in the device's own memory, or a copy there, which is made anew in each run
// and kept. In the order of the stream.
class GivenNumbers {
 public:
  // The place on the device; of no numbers `place` itself.
  Result<const float*> bring(const DeviceGround& ground, DeviceStream& stream, const float* place, std::int64_t count);

 private:
  DeviceBytes copy_;
};

}  // namespace plait::fused
