#include "runtime/execution/exchange.h"

#include <utility>

#include "runtime/execution/caller.h"

namespace plait::runtime {

std::byte* Exchange::reserve(CallMemory& memory, std::size_t bytes, const Piece* on_device) const {
  if (on_device == nullptr) return memory.reserve(bytes);
  return memory.reserve_pinned(bytes, *on_device->device, memory_of(*on_device));
}

int Exchange::start_flow(CallMemory& memory, const Piece* on_device) {
  buffers_.flow = nullptr;
  if (on_device == nullptr) return 0;
  DeviceFlow& flow = memory.flow();
  flow.follow_program(*on_device->device, memory_of(*on_device));
  if (const DeviceFlow* other = std::exchange(followed_, nullptr); other != nullptr) flow.follow(*other);
  if (const Status started = flow.start(); !started.ok()) return caller().code_of(started);
  buffers_.flow = &flow;
  return 0;
}

}  // namespace plait::runtime
