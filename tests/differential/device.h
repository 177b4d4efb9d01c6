// Buffers in memory that the processor cannot touch: a driver's (tests/fake_cuda), which is loaded while the job runs.
#pragma once

#include <cstddef>
#include <span>

namespace plait::test {

// Loads the driver from this file. false: it cannot be used.
bool load_device(const char* driver);
bool device_loaded();

// Of so many buffers one is not in the device's memory.
void set_host_buffers(std::size_t one_in);
std::size_t host_buffers_one_in();

// What stands in a buffer, in memory of the device; one in eight in memory of the driver's that the processor reaches
// as well, pinned or managed.
class DeviceCopy {
 public:
  explicit DeviceCopy(std::span<std::byte> buffer);
  ~DeviceCopy();
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  // Of what stands there in the buffer.
  std::byte* address_of(const std::byte* place) const { return device_ + (place - buffer_.data()); }
  // Into the buffer, with everything that was not to be touched.
  void bring_back() const;

 private:
  std::span<std::byte> buffer_;
  enum class Kind { device, pinned, managed } kind_ = Kind::device;
  std::byte* device_ = nullptr;
};

}  // namespace plait::test
