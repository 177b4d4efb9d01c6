#include "fused/device/given_data.h"

#include <cstring>
#include <utility>

#include "core/attempt.h"
#include "tl/device/device_pieces.h"

namespace plait::fused {
namespace {

bool reads(const DeviceGround& ground, const DeviceMemory& memory, const std::byte* place, std::size_t bytes) {
  if (memory.kind == MemoryKind::host || !lies_whole(*ground.driver, memory, place, bytes)) return false;
  return memory.kind != MemoryKind::device || memory.context == ground.memory.context;
}

// What the driver does not know needs none: its copies wait for all that the program has given the device before.
Status copy_given(const DeviceGround& ground, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (ground.driver->memory_at(from).kind != MemoryKind::host) return ground.driver->copy(to, from, bytes);
  std::memcpy(to, from, bytes);
  return {};
}

}  // namespace

const std::byte* GivenData::bring_bytes(const DeviceGround& ground, const std::byte* place, std::size_t bytes,
                                        std::size_t unit) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(place) % unit == 0;
  if (aligned && reads(ground, ground.driver->memory_at(place), place, bytes)) return place;
  const std::byte* copy = nullptr;
  const Status copied = attempt([&]() -> Status {
    if (Status status = check_given_bytes(bytes); !status.ok()) return status;
    if (next_ == copies_.size()) copies_.push_back(std::make_unique<PinnedBytes>());
    const Result<std::byte*> into = copies_[next_]->reserve(ground, bytes);
    if (!into.ok()) return into.status();
    ++next_;
    if (Status status = copy_given(ground, *into, place, bytes); !status.ok()) return status;
    copy = *into;
    return {};
  });
  if (status_.ok()) status_ = copied;
  return copy;
}

Result<const float*> GivenNumbers::bring(const DeviceGround& ground, DeviceStream& stream, const float* place,
                                         std::int64_t count) {
  if (place == nullptr || count <= 0) return place;
  const std::size_t bytes = bytes_of_numbers<float>(count);
  if (Status status = check_given_bytes(bytes); !status.ok()) return status;
  const DeviceMemory memory = ground.driver->memory_at(place);
  const bool there = memory.kind == MemoryKind::device && memory.context == ground.memory.context;
  const bool aligned = reinterpret_cast<std::uintptr_t>(place) % sizeof(float) == 0;
  if (there && aligned && lies_whole(*ground.driver, memory, reinterpret_cast<const std::byte*>(place), bytes))
    return place;
  if (copy_.bytes() < bytes) {
    copy_ = {};
    Result<DeviceBytes> made = DeviceBytes::make(ground, bytes);
    if (!made.ok()) return made.status();
    copy_ = std::move(*made);
  }
  if (Status status = stream.copy(copy_.data(), place, bytes); !status.ok()) return status;
  return reinterpret_cast<const float*>(copy_.data());
}

}  // namespace plait::fused
