// What a program computes between its collectives: a wait, where an accelerator would do it, or work on the processor;
// with or without a look at its requests now and then.
#pragma once

#include <functional>
#include <optional>

#include "perf/training/paced_kernel.h"

namespace plait::perf::workloads {

struct ComputationKind {
  bool on_processor = false;
  double test_every = 0;  // seconds between two looks at the requests; 0: none
};

class Computation {
 public:
  // Work on the processor is measured alone first, which takes a second. `test` is called at each look.
  Computation(ComputationKind kind, std::function<void()> test);

  // A wait is over that long after its begin, whatever the looks take; work is what takes so long alone.
  void run(double seconds);

 private:
  void wait(double seconds);
  void work(double seconds);

  ComputationKind kind_;
  std::function<void()> test_;
  std::optional<training::PacedKernel> kernel_;
};

}  // namespace plait::perf::workloads
