// Times reductions beside computation, share by share: the samples of LIBRA's contention model (section III-A).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/overlap/contention.h"
#include "tuner/measure/compute_kernel.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct OverlapSampling {
  KernelKind kernel = KernelKind::mixed;
  int repeats = 5;  // medians of so many
  // Told on rank 0: what comes, and the share of the work that is done, 0 to 1.
  std::function<void(const std::string& what, double done)> progress = [](const std::string&, double) {};
};

struct OverlapSamples {
  std::vector<ContentionSample> samples;
  std::vector<std::string> plans;  // that ran, by size; known on rank 0
  double agreement = 0;            // Contention::agreement
};

// Samples of all shares and sizes. Collective over the job; blocks. The same on all ranks but for `plans`.
// Precondition: warm_up() was ok. `unavailable` where no helper thread moves reductions on in this job, or without
// memory; `invalid` where a share has more threads than a rank has processing units; `unsupported` where the reductions
// are the host's; `peer_failed` when a result was wrong.
Result<OverlapSamples> sample_overlap(MpiSession& session, std::span<const CommunicationShare> shares,
                                      std::span<const std::size_t> sizes, const OverlapSampling& sampling);

}  // namespace plait::tuner
