// NVIDIA's driver, where the program has loaded it: libcuda is never loaded, nor initialised, by us.
#pragma once

#include <memory>

#include "tl/device_driver.h"

namespace plait::tl {

// `library`: of dlopen(). nullptr: it lacks a function.
std::unique_ptr<DeviceDriver> open_cuda_driver(void* library);

}  // namespace plait::tl
