// Measures one collective call as the host and as Plait run it, in turn in this process (docs/bench.md).
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "tuner/measure/collective_calls.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"
#include "tuner/text/measurement.h"

namespace plait::tuner {

struct MeasureOptions {
  double seconds = 1;    // that the batches of one call should take together
  double nic_bytes = 0;  // that a call moves through the busiest NIC, 0 where it does not matter
};

// Lets Plait set up MPI_COMM_WORLD. `internal` when this program's calls do not reach Plait. Collective.
Status warm_up(MpiSession& session);

// Collective; acceleration is off afterwards. `peer_failed` when a result was wrong, with where and by whom;
// `unavailable` without memory. All ranks get the same.
Result<Measurement> measure(MpiSession& session, const CallSpec& spec, const MeasureOptions& options);

}  // namespace plait::tuner
