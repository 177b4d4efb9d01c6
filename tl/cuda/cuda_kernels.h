// The kernels that gather and scatter the runs of derived types, as the driver loads them. They are built where nvcc is
// found; without it the library has none.
#pragma once

#include <atomic>

#include "tl/cuda/cuda_library.h"
#include "tl/device_driver.h"

namespace plait::tl {

// Of one context. A module lives as long as its context.
struct CudaKernels {
  Cuda::Function pack = nullptr, unpack = nullptr;
  bool usable() const { return pack != nullptr && unpack != nullptr; }
};

// Loaded when they are first asked for in that context, which is current. Without kernels where the image is refused.
CudaKernels kernels_in(const Cuda& cuda, Cuda::Context context);

// What they are started with, in this order; kernels.cu has the same.
struct CudaKernelCall {
  unsigned long long packed, elements, runs;
  unsigned run_count, word_bytes;
  unsigned long long packed_bytes;
  long long extent;
  unsigned long long begin, end;
};
CudaKernelCall kernel_call(const std::byte* packed, const DeviceRuns& runs);
Cuda::Outcome start_kernel(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaKernelCall& call);

}  // namespace plait::tl
