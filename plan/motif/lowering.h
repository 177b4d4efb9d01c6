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

// The instruction of programs that a motif of the whole pattern is; not of an all-to-all.
Instruct instruct_of(Collective what);

// The algorithm by which a motif of the whole pattern goes; nullptr: its transfers go directly.
const Algorithm* algorithm_of(const Motif& motif, const Way& way);

// By motif, from the left: which of so many ways it goes by. The parts of an outermost composition in parallel take
// them in turn, and with a part all of its motifs; motifs that are in none take them in turn as well.
std::vector<std::size_t> dealt_ways(const Term& term, std::size_t ways);

// Whether the composition's parts are parts of a pattern (a spline), not of the payload.
bool is_splined(const Term& term);

// How all that a rewriting is made of is run: as one plan, or by who says when each part begins (parts.h).
enum class Running { as_one, part_by_part };

// All ranks' schedules; prove() them before their first run. Motifs go by `ways` as they are dealt; without any by the
// usual algorithms over all rails. Parts of a pattern (splines) on one rail take turns: a rank sends to those of the
// next part when it is through with one. `collective`: the motif's own, or the one whose blocks differ in length
// (allgatherv, reduce_scatter). Fails (unsupported) where the data would be cut into too many blocks.
Result<LoweredPlan> lower(const Rewriting& rewriting, std::span<const Way> ways, Collective collective,
                          const Hierarchy& hierarchy, const Routes& routes, Running running = Running::as_one);

}  // namespace plait::plan::motif
