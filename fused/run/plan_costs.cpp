#include "fused/run/plan_costs.h"

#include <array>
#include <type_traits>

namespace plait::fused {

// In rank 0's words: slices are cut by them on both sides.
Result<PlanCosts> agree_on_costs(Oob& oob, const Team* team) {
  std::array<WayCost, 2> ways;
  static_assert(std::is_trivially_copyable_v<WayCost>);
  if (team != nullptr) ways = {cost_within_node(team->planner.machine()), cost_between_nodes(team->planner.machine())};
  if (Status met = oob.tell_all(&ways, sizeof ways, "agree on their slices"); !met.ok()) return met;
  const Result<Processors> processors = own_processors(oob);
  if (!processors.ok()) return processors.status();
  return PlanCosts{.near = ways[0], .far = ways[1], .processors = *processors};
}

}  // namespace plait::fused
