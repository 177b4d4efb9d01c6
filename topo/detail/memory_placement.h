// The part of topo/memory_placement.h that knows hwloc, for this folder and its tests.
#pragma once

#include <functional>
#include <span>

#include "topo/detail/hwloc_topology.h"
#include "topo/memory_placement.h"

namespace plait::topo::detail {

// Binds one range: 0, or -1 with errno, as hwloc_set_area_membind.
using BindArea = std::function<int(const PlacedRange& range, hwloc_const_nodeset_t nodes)>;

Status place_memory(hwloc_topology_t topology, std::span<const PlacedRange> ranges, const BindArea& bind);

}  // namespace plait::topo::detail
