// Chooses the plan of a call, proves it, and keeps this rank's schedule. One planner a communicator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/choose/host_rows.h"
#include "plan/choose/table.h"
#include "plan/lower/bound_schedule.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "plan/model/routes.h"
#include "plan/model/schedule.h"
#include "topo/hierarchy.h"

namespace plait::plan::motif {
struct PartedPlan;  // parts.h
}

namespace plait::plan {

// The planner leaves larger communicators to the host. Below, a rank lowers its own steps and proves them by parts
// (plan/lower/composition.h).
inline constexpr int most_planned_ranks = 1 << 16;

// Real communicators of more ranks are left to the host before a planner is asked: so many are what set-up was tried
// with, as threads of one process (docs/scale.md).
inline constexpr int most_team_ranks = 1 << 13;

// Why the planner leaves a call to the host; host_rows.h has more.
namespace reasons {
inline constexpr const char* too_large = "communicator too large to plan for";
inline constexpr const char* no_plan = "no plan for this hierarchy";
}  // namespace reasons

// Calls whose payload_bytes() are in one class are decided alike: powers of two.
int class_of_payload(std::size_t bytes);

// What the ranks of a communicator agreed on at set-up, and what the choice may depend on.
struct PlannerOptions {
  std::string forced_plan;  // PLAIT_PLAN; empty: choose
  // Goes before the cost model where it has a plan for the call, and behind forced_plan; its rows of what is the host's
  // go before Plait's own. nullptr: none.
  std::shared_ptr<const TuningTable> table = {};
  std::size_t chunk_bytes = 0;  // 0: by the cost model
  bool host_when_faster = true;
  HostKind host = HostKind::mpi;
  bool warns = true;    // tells the user of a forced plan that does not exist; one process of a job should
  bool staged = false;  // as in CandidateContext
  std::optional<Routes> routes = {};  // between the ranks; none: usual_routes()
  int rails = 0;                      // of the network, where plans may be bound to them
  double siblings = 1;                // ranks of the job on a node, over those of this communicator: they share the NIC
  Machine machine = default_machine();
};

// A plan that was lowered and proven for this rank.
struct ReadyPlan {
  std::string name;  // "RD.2(chain) AR.1(ring) BC.2(chain) x8"
  Semantics semantics;
  Schedule schedule;
};

// Payloads from <= bytes < to; HostRow::no_limit: without an end.
struct PayloadRange {
  std::size_t from = 0, to = 0;
  bool operator==(const PayloadRange&) const = default;
};

// A plan that a trial may try.
struct Rival {
  std::string name;
  double seconds = 0;  // predicted, of the class's shortest call
};

// What to do with a call. `plan` is null when the host should have it; then `reason` says why.
struct Choice {
  const ReadyPlan* plan = nullptr;
  std::string_view reason;
};

// Decisions and proven plans by the shape of communicators, so that a new communicator of a known shape plans nothing.
// Thread-safe. One a process; it must outlive no planner: they share what they use.
class PlanStore {
 public:
  PlanStore();
  ~PlanStore();

 private:
  friend class Planner;
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// Pure apart from its cache: the same calls give the same choices on every rank. Not thread-safe (a communicator runs
// one collective at a time).
class Planner {
 public:
  // `store` may be null: nothing is shared then.
  Planner(Hierarchy hierarchy, int rank, PlannerOptions options, PlanStore* store = nullptr);
  ~Planner();

  // The choice for a call; slow the first time for a (collective, root, size class), a look-up afterwards.
  // The pointer stays valid until force(), or for the planner's life.
  Choice choose(const Call& call);

  // Whether the choice is the same for all calls of a class (and root): no table says more exactly which sizes it
  // means.
  bool chooses_by_class() const;

  // How much less a call of this payload takes by the plan that the table has for it than on the host, in seconds; 0
  // where no table says.
  double saved_by_table(const Call& call) const;

  // Whether the choice would be one between those plans, as far as that can be told without choosing.
  bool is_to_choose(const Call& call) const;
  // The plans that the model predicts to be the best for calls of this one's class, the best first; for a trial. None
  // where the choice is made otherwise: a forced plan, a table's entry, or a rule that knows the host to be faster.
  std::vector<Rival> rivals(const Call& call);
  // Seconds that the network's ports leave the shortest call of this one's class, whichever rank is its root, were the
  // communicator alone on them; 0: no port limits it, or its segments differ. As far as the ports' rates are known.
  double least_seconds(const Call& call) const;
  // The one of them that is so named; where there is none, or its proof fails, as above.
  Choice choose(const Call& call, std::string_view rival);

  // A call's plan of motifs ("[segment:4,ring] @0,1"), to be run part by part: lowered and proven. Fails (invalid,
  // unsupported) with what is wrong with it here. Not kept.
  Result<motif::PartedPlan> in_parts(const Call& call, std::string_view motifs) const;

  // Ok when some collective can use this plan here (text as in PlannerOptions::forced_plan); else the first reason why
  // none can: the violated rule and where it shows. Lowers and proves it; changes nothing.
  Status check(const std::string& plan) const;
  // Takes this plan from now on wherever it applies; empty: chooses again.
  void force(std::string plan);

  const Hierarchy& hierarchy() const;
  const Routes& routes() const;
  const Machine& machine() const;
  const HostSizes& host_sizes() const;  // what else is the host's
  // Which payloads of posted or blocking calls are the host's, by the table or by a row, as far as their size says; may
  // overlap. For whoever asks before there is a call.
  std::vector<PayloadRange> host_ranges(Form form, Collective collective) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace plait::plan
