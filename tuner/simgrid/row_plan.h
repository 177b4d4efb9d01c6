// The plans of a simulated job: what Plait chooses for a call on the platform's machine, and each rank's schedule of
// it.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "plan/choose/candidate.h"
#include "plan/choose/planner.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Ranks in the order of their nodes; switches of 0 nodes: there are none.
struct SimulatedShape {
  int ranks = 1, ranks_per_node = 1, nodes_per_switch = 0;
};
Hierarchy hierarchy_of(const SimulatedShape& shape);

// What all ranks plan with.
struct System {
  Hierarchy hierarchy;
  Machine machine;
  Routes routes;
};

// What rank 0 has found for a row.
struct SharedPlan {
  std::string problem;
  std::optional<Candidate> candidate;
  std::optional<LoweredPlan> of_all;  // where it cannot be lowered for one rank
};

SharedPlan plan_for(const Call& call, const System& system);
Result<OwnPlan> own_plan(const SharedPlan& shared, const Call& call, const System& system, int rank);

}  // namespace plait::tuner
