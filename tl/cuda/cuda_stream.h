// A stream of NVIDIA's driver.
#pragma once

#include <memory>

#include "tl/cuda/cuda_kernels.h"
#include "tl/cuda/cuda_library.h"
#include "tl/device_driver.h"

namespace plait::tl {

// In that context. `cuda` must outlive them.
Result<std::unique_ptr<DeviceEvent>> make_cuda_event(const Cuda& cuda, Cuda::Context context);
Status record_in_program_stream(DeviceEvent& event);
Result<std::unique_ptr<DeviceStream>> make_cuda_stream(const Cuda& cuda, Cuda::Context context);

}  // namespace plait::tl
