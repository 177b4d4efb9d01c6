// Computation of a given length: a fixed amount of work, measured alone once, so that what runs beside it makes it
// longer.
#pragma once

#include "tuner/compute_kernel.h"

namespace plait::training {

class PacedKernel {
 public:
  // Takes a fifth of a second to measure itself.
  explicit PacedKernel(KernelKind kind);

  // As much work as takes so many seconds alone.
  void run(double seconds);
  double result() const { return kernel_.result(); }

 private:
  ComputeKernel kernel_;
  double pieces_a_second_ = 0;
  double owed_ = 0;  // pieces
};

}  // namespace plait::training
