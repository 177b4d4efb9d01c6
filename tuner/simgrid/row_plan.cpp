#include "tuner/simgrid/row_plan.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace plait::tuner {

Hierarchy hierarchy_of(const SimulatedShape& shape) {
  std::vector<Location> locations(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Location& location = locations[static_cast<std::size_t>(rank)];
    const int node = rank / shape.ranks_per_node;
    location.host = {.high = 1, .low = static_cast<std::uint64_t>(node) + 1};
    location.machine = static_cast<std::uint64_t>(node) + 1;
    location.cores_allowed = shape.ranks_per_node;
    location.core = rank % shape.ranks_per_node;
    if (shape.nodes_per_switch > 0)
      location.leaf_switch = static_cast<std::uint64_t>(node / shape.nodes_per_switch) + 1;
  }
  return Hierarchy::from_locations(locations);
}

namespace {

SharedPlan named_plan(std::string_view text, const Call& call, const System& system) {
  SharedPlan found;
  const CandidateContext context{.hierarchy = system.hierarchy, .machine = system.machine};
  Result<Candidate> candidate = named_candidate(text, call, context);
  if (!candidate.ok()) {
    found.problem = candidate.status().message();
    return found;
  }
  if (!lowers_alone(*candidate)) {
    Result<LoweredPlan> all =
        lower(*candidate, call.collective, call.root, call.commutative, system.hierarchy, system.routes);
    if (!all.ok()) {
      found.problem = all.status().message();
      return found;
    }
    found.of_all = std::move(*all);
  }
  found.candidate = std::move(*candidate);
  return found;
}

}  // namespace

SharedPlan plan_for(const Call& call, const System& system) {
  PlannerOptions options;
  options.host_when_faster = false;
  options.warns = false;
  options.machine = system.machine;
  options.routes = system.routes;
  Planner planner(system.hierarchy, 0, options);
  const Choice choice = planner.choose(call);
  if (choice.plan == nullptr) {
    SharedPlan found;
    found.problem = choice.reason;
    return found;
  }
  return named_plan(choice.plan->name, call, system);
}

Result<OwnPlan> own_plan(const SharedPlan& shared, const Call& call, const System& system, int rank) {
  if (shared.of_all) return OwnPlan{shared.of_all->semantics, shared.of_all->schedules[static_cast<std::size_t>(rank)]};
  return lower_own(*shared.candidate, {call.collective, call.root, call.commutative, system.hierarchy}, system.routes,
                   rank);
}

}  // namespace plait::tuner
