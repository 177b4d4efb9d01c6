#include "tuner/measure/compute_kernel.h"

#include <array>

namespace plait::tuner {
namespace {

constexpr std::size_t floats = std::size_t{4} << 20;  // of each array: 16 MiB
constexpr std::size_t stretch = 16384;                // floats that one piece goes through
constexpr int steps = 6000;                           // of arithmetic in one piece

}  // namespace

Result<KernelKind> kernel_named(const std::string& name) {
  if (name == "memory") return KernelKind::memory;
  if (name == "compute") return KernelKind::compute;
  if (name == "mixed") return KernelKind::mixed;
  return {Code::invalid, "--kernel: \"" + name + "\": expected memory, compute or mixed"};
}

ComputeKernel::ComputeKernel(KernelKind kind) : kind_(kind) {
  if (kind == KernelKind::compute) return;
  from_.assign(floats, 1);
  to_.assign(floats, 2);
}

void ComputeKernel::run(std::size_t pieces) {
  for (const std::size_t end = done_ + pieces; done_ < end; ++done_) {
    const bool memory = kind_ == KernelKind::memory || (kind_ == KernelKind::mixed && done_ % 2 == 0);
    if (memory)
      pass_over_memory();
    else
      multiply();
  }
}

// As a layer that updates its activations.
void ComputeKernel::pass_over_memory() {
  const float* from = from_.data() + at_;
  float* to = to_.data() + at_;
  for (std::size_t i = 0; i < stretch; ++i) to[i] = 0.5f * to[i] + from[i];
  sum_ += to[0];
  at_ = (at_ + stretch) % floats;
}

// Independent chains of additions and multiplications, in registers.
void ComputeKernel::multiply() {
  std::array<float, 32> chains;
  chains.fill(static_cast<float>(sum_ * 1e-30));
  for (int step = 0; step < steps / 8; ++step)
    for (float& chain : chains) chain = chain * 0.999f + 0.001f;
  for (const float chain : chains) sum_ += chain;
}

}  // namespace plait::tuner
