// What the ranks of a plan agree on before it is laid out: what messages cost, and how many workers each has.
#pragma once

#include "core/status.h"
#include "fused/layer.h"
#include "fused/tiles/slice_size.h"
#include "fused/workers/worker_count.h"
#include "runtime/oob/oob.h"
#include "runtime/team/team.h"

namespace plait::fused {

struct PlanCosts {
  WayCost near, far;  // within a node, and between nodes: the same on all ranks
  Processors processors;
};

// Collective. `team`: nullptr where this rank is alone.
Result<PlanCosts> agree_on_costs(Oob& oob, const Team* team);

}  // namespace plait::fused
