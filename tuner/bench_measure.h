// Measures one collective call as the host and as Plait run it, in turn in this process (docs/bench.md).
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "tl/mpi/collective_calls.h"
#include "tl/mpi/session.h"
#include "tuner/layer.h"

namespace plait::tuner {

struct MeasureOptions {
  double seconds = 1;    // that the batches of one call should take together
  double nic_bytes = 0;  // that a call moves through the busiest NIC, 0 where it does not matter
};

struct Measurement {
  double host_seconds = 0, plait_seconds = 0;  // a call, median of the batches; equal on all ranks
  int batches = 0;                             // of each
  // Known on rank 0: the plan that ran there, "host" where Plait handed the call on, and the channels of all ranks.
  std::string plan;
  std::vector<std::string> channels;
};

// Lets Plait set up MPI_COMM_WORLD. `internal` when this program's calls do not reach Plait. Collective.
Status warm_up(MpiSession& session);

// Collective; acceleration is off afterwards. `peer_failed` when a result was wrong, with where and by whom;
// `unavailable` without memory. All ranks get the same.
Result<Measurement> measure(MpiSession& session, const CallSpec& spec, const MeasureOptions& options);

}  // namespace plait::tuner
