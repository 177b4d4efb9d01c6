// How the host's collectives usually compare with the best predicted plan, where nothing is known of the system at
// hand: what a trial begins with. Data, a row each, from the tables of docs/performance.md and docs/tuning.md.
#pragma once

#include "plan/model/collective.h"
#include "runtime/layer.h"
#include "runtime/trial/belief.h"

namespace plait::runtime {

// `size_class`: as TuningRecord's. The ratio of the host's time to the plan's.
Prospect usual_host_prospect(Collective collective, int size_class, bool between_nodes);

}  // namespace plait::runtime
