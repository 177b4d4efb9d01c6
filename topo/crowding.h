// How ranks share the processors that they may use.
#pragma once

#include <span>

#include "topo/location.h"

namespace plait::topo {

// Where these ranks are most crowded: those bound alike over the processing units that they may use; at least 1. The
// same on all ranks that have all locations.
double ranks_per_core(std::span<const Location> locations);

}  // namespace plait::topo
