// What splits the groups of a shape, where a machine says it. "2x2x4" is read as packages and cores; on a machine whose
// file has the levels node, island and gpu it means two islands of four GPUs on each node, with the rates of their
// links.
#pragma once

#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// `shape` with the machine's levels within a node, where the machine has those of GPUs and as many as the shape, in the
// order in which a hierarchy has them; else as it is. Ranks keep their places: rank = vrank in both.
Hierarchy hierarchy_on(const Machine& machine, const Hierarchy& shape);

}  // namespace plait::plan
