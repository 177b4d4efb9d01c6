#include "plan/choose/proven_plan.h"

#include <string>
#include <utility>

#include "plan/lower/composition.h"
#include "plan/lower/exchange_proof.h"
#include "plan/lower/proof.h"

namespace plait::plan {

namespace {

Result<OwnPlan> proven_among_all(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes,
                                 int rank) {
  if (wanted.hierarchy.ranks() > most_wholly_proven_ranks)
    return Status(Code::unsupported, "plan " + candidate.name + ": is proven for at most " +
                                         std::to_string(most_wholly_proven_ranks) + " ranks, all at once");
  Result<LoweredPlan> lowered =
      lower(candidate, wanted.collective, wanted.root, wanted.commutative, wanted.hierarchy, routes);
  if (!lowered.ok()) return lowered.status();
  if (Status status = prove(lowered->semantics, lowered->schedules, wanted.commutative); !status.ok()) return status;
  return OwnPlan{lowered->semantics, std::move(lowered->schedules[static_cast<std::size_t>(rank)])};
}

}  // namespace

Result<OwnPlan> proven_plan(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes, int rank,
                            GroupProofs& proofs) {
  const bool direct = candidate.exchange != nullptr && candidate.exchange->direct;
  if (candidate.program.instructions.empty() && !direct) return proven_among_all(candidate, wanted, routes, rank);
  Result<OwnPlan> own = lower_own(candidate, wanted, routes, rank);
  if (!own.ok()) return own;
  if (direct) {
    const Status status = prove_direct(*candidate.exchange, wanted.hierarchy, routes, *own, rank);
    return status.ok() ? own : Result<OwnPlan>(status);
  }
  const Grid grid = grid_of(candidate, wanted, routes);
  const ComposedPlan composed{candidate.program, grid, in_order(wanted), routes, candidate.rails};
  if (Status status = prove_parts(composed, own->semantics, proofs); !status.ok()) return status;
  if (Status status = prove_own(composed, *own, rank); !status.ok()) return status;
  return own;
}

}  // namespace plait::plan
