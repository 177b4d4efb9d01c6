// How many workers a rank has, where nobody says it.
#pragma once

#include <sched.h>

#include <span>
#include <vector>

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/oob/oob.h"

namespace plait::fused {

struct Processors {
  // Workers of this process: PLAIT_FUSED_WORKERS, or its share of the processors that it may run on; at least 1.
  // Threads may run where the one that makes the plan may, unless they have places.
  int own = 1;
  bool crowded = false;  // that are more than its share
  // By worker, the processor that its thread is kept on (PLAIT_FUSED_BINDING); empty: none is.
  std::vector<int> places;
};

// How many processors those of `own` are, each shared evenly by the ranks of `all` that may run on it.
double share_of_processors(const cpu_set_t& own, std::span<const cpu_set_t* const> all);

// Collective.
Result<Processors> own_processors(Oob& oob);

}  // namespace plait::fused
