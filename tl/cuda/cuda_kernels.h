// The kernels, as the driver loads them: those that gather and scatter the runs of derived types, and those that
// combine and move data of several ranks. They are built where nvcc is found; without it the library has none.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "tl/cuda/cuda_fused.h"
#include "tl/cuda/cuda_library.h"
#include "tl/device_driver.h"

namespace plait::tl {

// By which kernel an operator works on elements, and on how many numbers of each.
struct CudaReduced {
  static constexpr std::size_t kernels = 12, none = kernels;
  std::size_t kernel = none;
  unsigned numbers = 1;   // of an element
  std::size_t bytes = 1;  // of a number
  unsigned op = 0;        // as kernels number it: Op
};
CudaReduced cuda_reduced(Op op, Element element);

// Of one context. A module lives as long as its context.
struct CudaKernels {
  Cuda::Function pack = nullptr, unpack = nullptr;
  std::array<Cuda::Function, CudaReduced::kernels> reduce{};  // nullptr: the image has none
  Cuda::Function move = nullptr;                              // likewise
  CudaFused fused;                                            // likewise
  bool usable() const { return pack != nullptr && unpack != nullptr; }
};

// Loaded when they are first asked for in that context, which is current. Without kernels where the image is refused.
const CudaKernels& kernels_in(const Cuda& cuda, Cuda::Context context);

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

// Likewise collectives.cuh. `head` numbers come before the first whole vector of 16 bytes, which begins at the same
// number in all sources and results; all of them where there is no such number.
struct CudaReduceCall {
  unsigned long long sources[most_device_parties], results[most_device_parties];
  unsigned source_count, result_count;
  unsigned op, unused;
  unsigned long long numbers, head;
};
CudaReduceCall reduce_call(const DeviceReduction& reduction, const CudaReduced& reduced);
Cuda::Outcome start_reduce(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaReduceCall& call);

// A row of blocks a move. `heads`: bytes before the first whole vector; all of them where there is none.
struct CudaMoveCall {
  unsigned long long to[most_device_parties], from[most_device_parties], bytes[most_device_parties],
      heads[most_device_parties];
  unsigned count;
};
CudaMoveCall move_call(std::span<const DeviceMove> moves);
Cuda::Outcome start_move(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaMoveCall& call);

}  // namespace plait::tl
