#include "tl/cuda/cuda_fused.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace plait::tl {
namespace {

constexpr unsigned fused_threads = 256;
// At most so many blocks, which take tiles by turns. Fewer would leave memory idle while blocks store and count; more
// would have to wait for others' ends, and begin with what is to leave last. Not measured.
constexpr unsigned most_fused_blocks = device_workgroups;

// The kernels take these types as they are.
template <class Call>
Cuda::Outcome start(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, Call call, std::uint64_t blocks) {
  if (blocks == 0) return Cuda::success;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, most_fused_blocks));
  std::array<void*, 1> parameters{&call};
  return cuda.launch(kernel, grid, 1, 1, fused_threads, 1, 1, 0, stream, parameters.data(), nullptr);
}

}  // namespace

CudaFused find_fused(const Cuda& cuda, Cuda::Module module) {
  constexpr std::array<const char*, CudaFused::row_types> types{"f32", "bf16", "i8"};
  CudaFused fused;
  bool all = cuda.find_function(&fused.multiply_matrices, module, "plait_multiply_matrices") == Cuda::success &&
             cuda.find_function(&fused.gather, module, "plait_gather_and_multiply") == Cuda::success &&
             cuda.find_function(&fused.check, module, "plait_check_lookups") == Cuda::success;
  for (std::size_t type = 0; type < types.size(); ++type) {
    const std::string name = types[type];
    all = all && cuda.find_function(&fused.pool[type], module, ("plait_pool_" + name).c_str()) == Cuda::success &&
          cuda.find_function(&fused.multiply[type], module, ("plait_multiply_" + name).c_str()) == Cuda::success;
  }
  return all ? fused : CudaFused{};
}

Cuda::Outcome start_pool(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DevicePooling& call) {
  return start(cuda, fused.pool[static_cast<std::size_t>(call.type)], stream, call, call.tiles.count);
}

Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream,
                             const DeviceProducts& call) {
  return start(cuda, fused.multiply[static_cast<std::size_t>(call.type)], stream, call, call.tiles.count);
}

Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream,
                             const DeviceMatrices& call) {
  return start(cuda, fused.multiply_matrices, stream, call, call.tiles.count);
}

Cuda::Outcome start_multiply(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceGather& call) {
  return start(cuda, fused.gather, stream, call, std::max<std::uint64_t>(call.tiles.count, call.blocks));
}

// A warp a bag.
Cuda::Outcome start_check(const Cuda& cuda, const CudaFused& fused, Cuda::Stream stream, const DeviceLookups& call) {
  constexpr std::uint64_t warps = fused_threads / 32;
  const auto bags = static_cast<std::uint64_t>(call.table_count * call.batch);
  return start(cuda, fused.check, stream, call, (bags + warps - 1) / warps);
}

}  // namespace plait::tl
