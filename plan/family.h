// The plan families: for each collective, the ways to do it. A family is a value; adding one is one entry in a table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/algorithms.h"
#include "plan/builder.h"
#include "plan/grid.h"
#include "plan/lowering.h"
#include "plan/program.h"
#include "topo/hierarchy.h"

namespace plait {

// A way to do one collective on one hierarchy, before the number of chunks is fixed.
struct Candidate {
  std::string name;      // "node:RD.2(flat) AR.1(ring) BC.2(flat)", "node:leaders"
  GridKind grid;
  Program program;       // empty: `emit` instead
  void (*emit)(Builder& builder, const Hierarchy& hierarchy) = nullptr;
  bool pipelined = false;  // worth cutting into several chunks
};

// Every family that applies, hierarchical and flat. For each collective and each hierarchy of two or more ranks there
// is at least one flat one, and one hierarchical one where the hierarchy has two or more levels.
std::vector<Candidate> candidates(Collective collective, const Hierarchy& hierarchy, bool commutative);

// All ranks' schedules. `root` of a collective without one is 0. Fails where the candidate doesn't fit the hierarchy.
Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, int chunks,
                          const Hierarchy& hierarchy, bool shared_memory);

}  // namespace plait
