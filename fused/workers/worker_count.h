// How many workers a rank has, where nobody says it.
#pragma once

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/oob/oob.h"

namespace plait::fused {

// Collective. The processors that this process may run on, shared out among the ranks that may run on just these; at
// least one.
Result<int> own_processors(Oob& oob);

}  // namespace plait::fused
