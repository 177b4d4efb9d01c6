// Where the ranks of a job run, and on what.
#pragma once

#include <vector>

#include "plan/model/machine.h"
#include "topo/hierarchy.h"
#include "topo/location.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Every rank's location, by rank. Collective; blocks for some milliseconds.
std::vector<Location> gather_locations(MpiSession& session);

// What a machine file or a table from this job says of the system: system_fingerprint() (plan/choose/table.h) and the
// job's shape, if it has one. Where the ranks' processors differ they are not in it: no job would fit it. Known on
// rank 0. Collective; blocks.
Fingerprint job_fingerprint(MpiSession& session, const Hierarchy& hierarchy);

}  // namespace plait::tuner
