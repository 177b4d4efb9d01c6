// Computation of a given length: a fixed amount of work, measured alone once, so that what runs beside it makes it
// longer.
#pragma once

#include "perf/layer.h"
#include "tuner/measure/compute_kernel.h"

namespace plait::perf::training {

class PacedKernel {
 public:
  // `pieces_a_second`: as another job measured; 0: takes a second to measure itself.
  PacedKernel(KernelKind kind, double pieces_a_second);
  double pieces_a_second() const { return pieces_a_second_; }

  // As much work as takes so many seconds alone.
  void run(double seconds);
  double result() const { return kernel_.result(); }

 private:
  ComputeKernel kernel_;
  double pieces_a_second_ = 0;
  double owed_ = 0;  // pieces
};

}  // namespace plait::perf::training
