// The curves of LIBRA's contention model, fitted to samples by non-linear least squares of their relative errors
// (Levenberg and Marquardt's method, from Eigen). Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "core/status.h"
#include "plan/overlap/contention.h"

namespace plait::plan {

struct FitOptions {
  std::optional<double> g4 = 0.6;  // the paper's value; none: fitted as well
};

// Start-up and moved bytes come from `costs`. Fails (invalid) without samples, and where a sample is no longer than its
// start-up. Curves with more parameters than there are different shares keep g3 and g4 at what they begin with.
Result<ContentionFit> fit_contention(const std::vector<ContentionSample>& samples, const ReductionCosts& costs,
                                     const FitOptions& options);

// The samples' means by share, as a table.
Result<std::vector<ContentionRow>> measured_table(const std::vector<ContentionSample>& samples,
                                                  const ReductionCosts& costs);

}  // namespace plait::plan
