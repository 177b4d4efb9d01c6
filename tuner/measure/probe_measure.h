// Takes the samples of `plait probe` in a job (docs/probe.md).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "topo/hierarchy.h"
#include "tuner/measure/probe_samples.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct ProbeOptions {
  double seconds = 20;                     // for all of it, about
  std::vector<std::string> channels = {};  // to measure one by one, where they can connect two ranks alone
  // Told on rank 0, before each curve: what comes, and the share of the work that is done, 0 to 1.
  std::function<void(const std::string& what, double done)> progress = [](const std::string&, double) {};
};

// Collective over the job; blocks. Acceleration is off afterwards. The same on all ranks: curves of times are the
// slowest rank's. `unavailable` where Plait cannot be used between some pair of ranks, or without memory.
Result<ProbeSamples> take_samples(MpiSession& session, const Hierarchy& hierarchy, const ProbeOptions& options);

// Collective: the curve of the ranks that have measured one, on all ranks; where several have, each point's largest
// figures. Of at most so many points; nothing from the others.
ProbeCurve known_to_all(MpiSession& session, const ProbeCurve& mine, std::size_t points);

}  // namespace plait::tuner
