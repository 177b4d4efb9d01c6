// Runs the agenda of `plait tune --measure` in a job (docs/tuning.md).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "tuner/measure/session.h"
#include "tuner/text/job_shape.h"
#include "tuner/text/layer.h"
#include "tuner/text/measured_table.h"

namespace plait::tuner {

struct TuneMeasureOptions {
  double seconds = 90;  // for all of it, about
  // Told on rank 0, before each size: what comes, and the share of the work that is done, 0 to 1.
  std::function<void(const std::string& what, double done)> progress = [](const std::string&, double) {};
};

// Collective over the job; blocks. Acceleration is off afterwards, and no plan is forced. The agenda and the result are
// the same on all ranks: times are the slowest rank's. `unavailable` where Plait cannot be used in this job, or without
// memory; `peer_failed` when a result was wrong.
Result<TuneMeasurement> measure_agenda(MpiSession& session, const JobShape& job, std::span<const AgendaItem> agenda,
                                       const TuneMeasureOptions& options);

}  // namespace plait::tuner
