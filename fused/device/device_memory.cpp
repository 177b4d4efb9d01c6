#include "fused/device/device_memory.h"

#include <cstdlib>
#include <utility>

namespace plait::fused {
namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

// ---- The device's ----

void DeviceBytes::release() noexcept {
  if (data_ != nullptr) ground_.driver->release(data_, ground_.memory);
  data_ = nullptr;
}

DeviceBytes& DeviceBytes::operator=(DeviceBytes&& other) noexcept {
  if (this == &other) return *this;
  release();
  ground_ = other.ground_;
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Result<DeviceBytes> DeviceBytes::make(const DeviceGround& ground, std::size_t bytes) {
  DeviceBytes made;
  if (bytes == 0) return made;
  const Result<std::byte*> data = ground.driver->allocate(ground.memory, bytes);
  if (!data.ok()) return data.status();
  made.ground_ = ground;
  made.data_ = *data;
  made.bytes_ = bytes;
  return made;
}

Result<DeviceBytes> DeviceBytes::copy_of(const DeviceGround& ground, const void* data, std::size_t bytes) {
  Result<DeviceBytes> made = make(ground, bytes);
  if (!made.ok() || bytes == 0) return made;
  if (Status status = ground.driver->copy(made->data(), data, bytes); !status.ok()) return status;
  return made;
}

// ---- The processor's ----

void PinnedBytes::release() noexcept {
  if (data_ == nullptr) return;
  driver_->unpin(data_);
  std::free(data_);
  data_ = nullptr;
  bytes_ = 0;
}

Result<std::byte*> PinnedBytes::reserve(const DeviceGround& ground, std::size_t bytes) {
  if (bytes <= bytes_) return data_;
  release();
  const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  auto* made = static_cast<std::byte*>(std::aligned_alloc(page_bytes, whole));
  if (made == nullptr) return Status(Code::unavailable, "no memory for what a device is to read");
  if (Status status = ground.driver->pin(made, whole); !status.ok()) {
    std::free(made);
    return status;
  }
  driver_ = ground.driver;
  data_ = made;
  bytes_ = whole;
  return data_;
}

Result<Pin> Pin::make(const DeviceDriver& driver, std::byte* memory, std::size_t bytes) {
  if (Status status = driver.pin(memory, bytes); !status.ok()) return status;
  return Pin(driver, memory);
}

}  // namespace plait::fused
