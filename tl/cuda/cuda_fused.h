// The kernels of fused operators (fused.cuh, gather.cuh), as the driver starts them.
#pragma once

#include <array>

#include "tl/cuda/cuda_library.h"
#include "tl/device_tiles.h"

namespace plait::tl {

// All of them or none.
struct CudaFused {
  static constexpr std::size_t row_types = 3;                                     // as DeviceRows numbers them
  std::array<Cuda::Function, row_types> pool{}, multiply{};                       // by the type of the rows
  Cuda::Function multiply_matrices = nullptr, gather = nullptr, check = nullptr;  // nullptr: there are none
  bool usable() const { return check != nullptr; }
};
CudaFused find_fused(const Cuda& cuda, Cuda::Module module);

// In the current context. Nothing is started where there are no tiles.
Cuda::Outcome start_pool(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DevicePooling& call);
Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceProducts& call);
Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceMatrices& call);
Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceGather& call);
Cuda::Outcome start_check(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceLookups& call);

}  // namespace plait::tl
