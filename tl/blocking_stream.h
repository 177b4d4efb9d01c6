// A stream for drivers that are only asked for copies which block: all that it is given is done at once.
#pragma once

#include <memory>

#include "tl/device_driver.h"

namespace plait::tl {

struct PassedEvent final : DeviceEvent {
  Result<bool> passed() override { return true; }
};

class BlockingStream final : public DeviceStream {
 public:
  explicit BlockingStream(const DeviceDriver& driver) : driver_(driver) {}

  Status follow(DeviceEvent&) override { return {}; }
  Status copy(void* to, const void* from, std::size_t bytes) override { return driver_.copy(to, from, bytes); }
  Status copy_rows(const Rows& rows) override {
    Status status;
    for (std::size_t row = 0; row < rows.rows && status.ok(); ++row)
      status = driver_.copy(rows.to + row * rows.to_pitch, rows.from + row * rows.from_pitch, rows.bytes);
    return status;
  }
  Status pack(std::byte*, const DeviceRuns&) override { return no_kernels(); }
  Status unpack(const DeviceRuns&, const std::byte*) override { return no_kernels(); }
  Status record(DeviceEvent&) override { return {}; }
  void finish() noexcept override {}

 private:
  static Status no_kernels() { return {Code::internal, "a driver without kernels was asked for one"}; }

  const DeviceDriver& driver_;
};

}  // namespace plait::tl
