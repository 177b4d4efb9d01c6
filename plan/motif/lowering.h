// From motifs to the messages of all ranks: one plan in which each motif goes by an algorithm and a rail of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/algorithm.h"
#include "plan/model/builder.h"
#include "plan/model/routes.h"
#include "plan/motif/motif.h"
#include "topo/hierarchy.h"

namespace plait::plan::motif {

// A motif's physical plan (section 4.2): how it goes, and where.
struct Way {
  const Algorithm* algorithm = nullptr;  // nullptr, and where it does not fit the motif: the usual one
  std::int8_t rail = any_rail;
};

// The algorithm by which a motif of the whole pattern goes; nullptr: its transfers go directly.
const Algorithm* algorithm_of(const Motif& motif, const Way& way);

// All ranks' schedules; prove() them before their first run. Motif m, from the left, goes by ways[m mod size]; without
// any by the usual algorithms over all rails. Parts of a pattern (splines) of one composition take turns: a rank sends
// to those of the next one when it is through with one. `collective`: the motif's own, or the one whose blocks differ
// in length (allgatherv, reduce_scatter). Fails (unsupported) where the data would be cut into too many blocks.
Result<LoweredPlan> lower(const Rewriting& rewriting, std::span<const Way> ways, Collective collective,
                          const Hierarchy& hierarchy, const Routes& routes);

}  // namespace plait::plan::motif
