// Memory that a plan has for its device, and memory of the processor's that the device reaches.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/status.h"
#include "fused/layer.h"
#include "tl/device_driver.h"

namespace plait::fused {

// The device that a rank's data lie on.
struct DeviceGround {
  const DeviceDriver* driver = nullptr;  // nullptr: the rank has no data
  DeviceMemory memory;                   // of some of its data
};

// Of the device's; released at the end.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  ~DeviceBytes() { release(); }
  DeviceBytes(DeviceBytes&& other) noexcept
      : ground_(other.ground_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBytes& operator=(DeviceBytes&& other) noexcept;

  // Of nothing there is none.
  static Result<DeviceBytes> make(const DeviceGround& ground, std::size_t bytes);
  // A copy of memory of the processor's.
  static Result<DeviceBytes> copy_of(const DeviceGround& ground, const void* data, std::size_t bytes);
  // These in place of what it was. They are as they lie in memory.
  template <class T>
  Status take_list(const DeviceGround& ground, const std::vector<T>& list) {
    Result<DeviceBytes> copy = copy_of(ground, list.data(), list.size() * sizeof(T));
    if (copy.ok()) *this = std::move(*copy);
    return copy.status();
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void release() noexcept;

  DeviceGround ground_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Of the processor's, pinned.
class PinnedBytes {
 public:
  PinnedBytes() = default;
  ~PinnedBytes() { release(); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;

  // At least so many; when they become more, what they held is lost, and nothing may be at work on it.
  Result<std::byte*> reserve(const DeviceGround& ground, std::size_t bytes);
  std::byte* data() const { return data_; }

 private:
  void release() noexcept;

  const DeviceDriver* driver_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Memory that somebody else keeps, pinned; whole pages.
class Pin {
 public:
  Pin() = default;
  ~Pin() {
    if (driver_ != nullptr) driver_->unpin(memory_);
  }
  Pin(Pin&& other) noexcept : driver_(std::exchange(other.driver_, nullptr)), memory_(other.memory_) {}
  Pin& operator=(Pin&&) = delete;

  static Result<Pin> make(const DeviceDriver& driver, std::byte* memory, std::size_t bytes);

 private:
  Pin(const DeviceDriver& driver, std::byte* memory) : driver_(&driver), memory_(memory) {}

  const DeviceDriver* driver_ = nullptr;
  std::byte* memory_ = nullptr;
};

}  // namespace plait::fused
