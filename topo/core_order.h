// Processors in the order in which threads that compute should have them.
#pragma once

#include <sched.h>

#include <vector>

#include "core/status.h"
#include "topo/topology_source.h"

namespace plait::topo {

// The processors of `usable`, as the system numbers them: first one of each core, core by core as hwloc numbers them,
// then each core's second one, and so on; what the machine does not have is left out. Loads the topology, which takes
// milliseconds.
Result<std::vector<int>> processors_by_core(const cpu_set_t& usable, const TopologySource& source);

}  // namespace plait::topo
