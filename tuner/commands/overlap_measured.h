// `plait overlap measure`: samples of reductions beside computation, the curves that fit them, and a contention file
// (docs/overlap.md).
#pragma once

#include <string>

#include "core/status.h"

namespace plait::tuner {

// As the user wrote them.
struct OverlapMeasureOptions {
  std::string output;
  std::string kernel = "mixed";
  std::string shares = "1x0.1,1x0.2,1x0.3,1x0.4,1x0.5";
  std::string bytes = "16M";
  std::string machine = "default";
  std::string g4 = "0.6";
  int repeats = 5;  // at least
  bool table = false, json = false, quiet = false;
};

// Under a launcher: every rank calls it. Fails (invalid) outside of one, and with the option that is wrong.
Result<int> measure_overlap(const OverlapMeasureOptions& options);

}  // namespace plait::tuner
