#include "tl/cuda/cuda_kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "core/log.h"

// A fat binary, or what no driver takes for one (tl/CMakeLists.txt).
extern "C" const unsigned char plait_cuda_image[];

namespace plait::tl {
namespace {

constexpr unsigned threads_a_block = 256, most_blocks = 64;
constexpr unsigned widest_word = 16;

CudaKernels load(const Cuda& cuda) {
  CudaKernels kernels;
  Cuda::Module module = nullptr;
  Cuda::Outcome outcome = cuda.load_module(&module, plait_cuda_image);
  if (outcome == Cuda::success) outcome = cuda.find_function(&kernels.pack, module, "plait_pack");
  if (outcome == Cuda::success) outcome = cuda.find_function(&kernels.unpack, module, "plait_unpack");
  if (outcome == Cuda::success) return kernels;
  debug("device memory: no kernels for derived types, which are copied run by run: " + cuda.text_of(outcome));
  return {};
}

}  // namespace

CudaKernels kernels_in(const Cuda& cuda, Cuda::Context context) {
  static auto* guard = new std::mutex;
  static auto* known = new std::map<Cuda::Context, CudaKernels>;
  const std::scoped_lock lock(*guard);
  const auto [place, is_new] = known->try_emplace(context);
  if (is_new) place->second = load(cuda);
  return place->second;
}

// The widest word by which all that is copied can be counted.
CudaKernelCall kernel_call(const std::byte* packed, const DeviceRuns& runs) {
  std::uint64_t all = as_address(packed) | as_address(runs.elements) | runs.packed_bytes | runs.begin | runs.end |
                      static_cast<std::uint64_t>(runs.extent) | widest_word;
  for (const DeviceRun& run : runs.runs) all |= static_cast<std::uint64_t>(run.place) | run.packed | run.bytes;
  return {.packed = as_address(packed),
          .elements = as_address(runs.elements),
          .runs = as_address(runs.runs.data()),
          .run_count = static_cast<unsigned>(runs.runs.size()),
          .word_bytes = static_cast<unsigned>(all & (~all + 1)),
          .packed_bytes = runs.packed_bytes,
          .extent = runs.extent,
          .begin = runs.begin,
          .end = runs.end};
}

Cuda::Outcome start_kernel(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaKernelCall& call) {
  std::array<void*, 9> parameters{&call.packed,       &call.elements, &call.runs,  &call.run_count, &call.word_bytes,
                                  &call.packed_bytes, &call.extent,   &call.begin, &call.end};
  const unsigned long long words = (call.end - call.begin) / call.word_bytes;
  const unsigned long long blocks = (words + threads_a_block - 1) / threads_a_block;
  const auto grid = static_cast<unsigned>(std::clamp<unsigned long long>(blocks, 1, most_blocks));
  return cuda.launch(kernel, grid, 1, 1, threads_a_block, 1, 1, 0, stream, parameters.data(), nullptr);
}

}  // namespace plait::tl
