// Computation to run beside communication: pieces of equal work, bound by memory, by arithmetic, or by both.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/status.h"

namespace plait::tuner {

enum class KernelKind { memory, compute, mixed };
// Fails (invalid) with the list of names.
Result<KernelKind> kernel_named(const std::string& name);

// Used by one thread; has no state that other kernels share.
class ComputeKernel {
 public:
  // Allocates what a memory-bound kernel goes through: more than a core's caches hold.
  explicit ComputeKernel(KernelKind kind);
  // So many pieces, of some microseconds each.
  void run(std::size_t pieces);
  // What was computed, so that it must be.
  double result() const { return sum_; }

 private:
  void pass_over_memory();
  void multiply();

  KernelKind kind_;
  std::vector<float> from_, to_;
  std::size_t at_ = 0;
  std::size_t done_ = 0;  // pieces
  double sum_ = 0;
};

}  // namespace plait::tuner
