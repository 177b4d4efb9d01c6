// A device of NVIDIA's for a process whose program uses none: a tool that measures. In all others Plait loads no
// driver.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "tl/device_driver.h"

namespace plait::tl {

struct OpenedDevice {
  std::unique_ptr<DeviceDriver> driver;
  DeviceMemory memory;  // of no allocation: which device and context
};

// Loads the driver's library, which stays, makes the device's first context, and makes it the calling thread's. Devices
// are taken by turns: number `ordinal` of those that the process may see. Fails with what is missing.
Result<OpenedDevice> open_cuda_device(const std::string& library, int ordinal);

}  // namespace plait::tl
