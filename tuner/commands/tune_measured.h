// `plait tune --measure`: the model's best plans and the host on the system that the job runs on.
#pragma once

#include <string>

#include "core/status.h"

namespace plait::tuner {

// As the user wrote them.
struct TuneMeasuredOptions {
  std::string machine = "default";
  std::string collectives = "all";
  std::string least = "1", most = "4M";
  double seconds = 90;
  std::string output;  // empty: no table is written
  bool quiet = false;
  bool json = false;
};

// The exit code, the same on all ranks: 0; 1 where Plait cannot be used, a result was wrong or the table cannot be
// written; 2 for bad input. Rank 0 prints. Collective over the job, whose MPI it starts; blocks for about `seconds`.
// Outside of a job fails (invalid), with what is wrong with the options first.
Result<int> tune_measured(const TuneMeasuredOptions& options);

}  // namespace plait::tuner
