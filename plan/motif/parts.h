// A rewriting run part by part: what an enforcer of a step's schedule starts one by one, each at its time and over its
// channel, instead of the collective's whole plan at once (Mahajan et al., NSDI '23, section 4.3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/model/builder.h"
#include "plan/model/routes.h"
#include "plan/motif/lowering.h"
#include "plan/motif/motif.h"
#include "topo/hierarchy.h"

namespace plait::plan::motif {

// What is started at a time: a motif, or several that different ranks run beside each other.
struct Part {
  std::vector<const Motif*> motifs;  // of the term
  std::vector<int> after;            // earlier parts, by the composition
  std::size_t first = 0;             // number of its first motif, from the left
};

// From the left.
std::vector<Part> parts_of(const Term& term);

struct PartedPlan {
  LoweredPlan plan;  // whole, with Schedule::parts
  int parts = 0;     // without the last one, which brings results to where they belong on each rank
  // By part, the last one included: those that must be through on a rank before this one starts there. The same on all
  // ranks: what the composition or the data of any rank asks for.
  std::vector<std::vector<int>> after;
};

// As lower(), to be run part by part: parts of a pattern do not take turns, as whoever starts them says when. Messages
// stay within a part, so that ranks which start them in one order need no agreement on anything else. Prove it before
// its first run.
Result<PartedPlan> lower_in_parts(const Rewriting& rewriting, std::span<const Way> ways, Collective collective,
                                  const Hierarchy& hierarchy, const Routes& routes);

// One rank's steps of one part, in the cells of the whole schedule.
Schedule steps_of_part(const Schedule& schedule, int part);

}  // namespace plait::plan::motif
