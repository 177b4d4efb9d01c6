// Plays a step, iteration after iteration, as a plain MPI program would: each operation is posted at its place, and
// waited for where a task needs it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "perf/workloads/computation.h"
#include "perf/workloads/posted_operation.h"
#include "plan/step/step_file.h"

namespace plait::perf::workloads {

struct PlayOptions {
  ComputationKind computation;
  double stretch = 1;  // of all computation
  Check check = Check::few_elements;
};

// An iteration, in seconds: all of it, and what of it was spent in MPI_Wait.
struct IterationTime {
  double all = 0, waited = 0;
};

class StepPlayer {
 public:
  // `step` as parse_step() gives it; fails (unsupported) where it has a collective that can't be posted.
  static Result<std::unique_ptr<StepPlayer>> of(const plan::step::Step& step, const PlayOptions& options,
                                                MPI_Comm communicator);

  // Operations that the next iteration waits for are under way behind it.
  IterationTime iteration();
  // Waits for what is left.
  void finish();
  std::uint64_t wrong() const;

 private:
  struct Part {
    std::unique_ptr<PostedOperation> operation;  // or none,
    double seconds = 0;                          // of a computation
    std::vector<PostedOperation*> needs;
  };

  StepPlayer(const plan::step::Step& step, const PlayOptions& options, MPI_Comm communicator);
  void wait_for(const Part& part);
  void test_all();

  std::vector<Part> parts_;
  Computation computation_;
  int iteration_ = 0;
  double waited_ = 0;
  std::vector<MPI_Request> requests_;  // of one look at all of them
  std::vector<int> completed_;
};

}  // namespace plait::perf::workloads
