// plait explain fused: how the workers of a fused operator spent a measured run, and what of its messages was hidden
// behind computation. docs/fused.md.
#pragma once

#include <string>

#include "core/status.h"

namespace plait::tuner {

// As the user wrote them.
struct FusedQuestion {
  std::string plan;  // "embedding"; "": the operator with the most runs
  std::string trace, svg;
  bool json = false;
};

// The exit code.
Result<int> explain_fused(const FusedQuestion& question);

}  // namespace plait::tuner
