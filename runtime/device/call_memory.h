// What a call works in: memory, and what it needs where some of its data lie in memory of a device.
#pragma once

#include <memory>
#include <utility>

#include "runtime/device/device_flow.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/job/work_memory.h"
#include "runtime/layer.h"

namespace plait::runtime {

class CallMemory : public WorkMemory {
 public:
  // In place of reserve(), for a call whose data the flow moves. Throws std::bad_alloc.
  std::byte* reserve_pinned(std::size_t bytes, const DeviceDriver& driver, const tl::DeviceMemory& near) {
    return pinned_.reserve(bytes, driver, near);
  }
  // Made when it is first asked for. Throws std::bad_alloc.
  DeviceFlow& flow() {
    if (flow_ == nullptr) flow_ = std::make_unique<DeviceFlow>();
    return *flow_;
  }
  bool has_flow() const { return flow_ != nullptr; }
  // Nothing is kept for the next call but the flow.
  void clear() {
    if (flow_ != nullptr) {
      flow_->abandon();
      flow_->end();
    }
    pinned_.give_back();
    static_cast<WorkMemory&>(*this) = WorkMemory();
  }

 private:
  PinnedMemory pinned_;
  std::unique_ptr<DeviceFlow> flow_;  // ends before what it copies to
};

}  // namespace plait::runtime
