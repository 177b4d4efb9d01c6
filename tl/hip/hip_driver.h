// AMD's runtime, where the program has loaded it.
#pragma once

#include <memory>

#include "tl/device_driver.h"

namespace plait::tl {

// `library`: of dlopen(). nullptr: it lacks a function.
std::unique_ptr<DeviceDriver> open_hip_driver(void* library);

}  // namespace plait::tl
