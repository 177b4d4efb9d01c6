// How many workers a rank has, where nobody says it.
#pragma once

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/oob/oob.h"

namespace plait::fused {

struct Processors {
  // Workers of this process: PLAIT_FUSED_WORKERS, or the processors that it may run on, shared out among the ranks that
  // may run on just these; at least 1. Threads may run where the one that makes the plan may.
  int own = 1;
  bool crowded = false;  // there are more such ranks than processors
};

// Collective.
Result<Processors> own_processors(Oob& oob);

}  // namespace plait::fused
