// Memory of CUDA's that is made apart from its addresses (cuMemCreate, cuMemMap), handed from process to process as
// files: what allocators that grow in place have, such as PyTorch's expandable segments, and no handle of CUDA IPC
// leads to. "CUDA driver API", virtual memory management.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "tl/cuda/cuda_library.h"
#include "tl/device_driver.h"

namespace plait::tl {

// As DeviceDriver::share_as_file(), map_pieces(), unmap_pieces().
Result<int> share_cuda_memory(const Cuda& cuda, const DeviceMemory& memory);
Result<std::byte*> map_cuda_pieces(const Cuda& cuda, std::span<const DevicePiece> pieces, const DeviceMemory& near);
void unmap_cuda_pieces(const Cuda& cuda, std::byte* mapped, std::span<const DevicePiece> pieces,
                       const DeviceMemory& near);

}  // namespace plait::tl
