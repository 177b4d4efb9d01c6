// Measures what the memory of this job's node lets a collective do (docs/bench.md).
#pragma once

#include <cstddef>

#include "core/status.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"
#include "tuner/text/node_limits.h"

namespace plait::tuner {

struct LimitOptions {
  double seconds = 0.01;  // a point of a curve and way to move, about; large moves take longer
  std::size_t largest_bytes = std::size_t{64} << 20;
  bool only_what_bounds = false;  // leaves out what limit_seconds() does not need: one rank alone, cold memory
};

// Collective. All ranks must be on one node; equal on all ranks. `unavailable`, with the reason, without memory or
// where the ranks may not share any. Takes about 3 times the memory of the largest size a rank.
Result<NodeLimits> measure_limits(MpiSession& session, const LimitOptions& options);

}  // namespace plait::tuner
