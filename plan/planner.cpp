#include "plan/planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "core/log.h"
#include "plan/candidate.h"
#include "plan/proof.h"

namespace plait {

namespace {

// Each rank lowers and simulates all ranks' schedules: a fraction of a second and some tens of megabytes for so many.
constexpr int most_ranks = 256;
// Between nodes the host's reduce_scatter of a few bytes ends in messages that nobody waits for (docs/performance.md).
constexpr std::size_t host_reduce_scatter_bytes = 512;
int size_class(std::size_t bytes) { return static_cast<int>(std::bit_width(bytes)); }

// The call that stands for all of its class: the smallest size, bytes, root 0, equal segments. The choice must not depend
// on which call of a class a communicator happens to make first: communicators of the same ranks choose alike.
Call representative(const Call& call, int ranks) {
  Call canonical{.collective = call.collective, .commutative = call.commutative};
  const int number = size_class(payload_bytes(call, ranks));
  canonical.count = number == 0 ? 0 : std::size_t{1} << (number - 1);
  canonical.element_bytes = number == 0 ? 0 : 1;
  if (call.counts != nullptr) canonical.count = std::max<std::size_t>(canonical.count / static_cast<std::size_t>(ranks), 1);
  return canonical;
}

}  // namespace

struct Planner::Implementation {
  // The choice does not depend on the root or on the exact size, so that it is made once a class.
  using ClassKey = std::tuple<Collective, int /* size class */, bool /* commutative */>;
  using PlanKey = std::tuple<Collective, int /* root */, bool /* commutative */, std::string /* label */>;

  struct Decision {
    bool host = false;
    std::string_view reason;
    Candidate candidate;
  };

  Hierarchy hierarchy;
  int rank;
  PlannerOptions options;
  std::map<ClassKey, Decision> decisions;
  std::map<PlanKey, std::unique_ptr<ReadyPlan>> plans;

  Choice choose(const Call& call);
  const Decision& decide(const Call& call);
  Decision compute_decision(const Call& call) const;
  CandidateContext context() const {
    return {hierarchy, options.machine, options.siblings, options.chunk_bytes};
  }
  bool host_is_faster(const Call& call) const;
  void check_forced_plan() const;
  const ReadyPlan* ready(const Call& call, const Candidate& candidate);
};

Choice Planner::Implementation::choose(const Call& call) {
  const Decision& decision = decide(call);
  if (decision.host) return {nullptr, decision.reason};
  const ReadyPlan* plan = ready(call, decision.candidate);
  if (plan == nullptr) return {nullptr, "plan refused by its proof"};
  return {plan, {}};
}

const Planner::Implementation::Decision& Planner::Implementation::decide(const Call& call) {
  const ClassKey key{call.collective, size_class(payload_bytes(call, hierarchy.ranks())), call.commutative};
  const auto [entry, is_new] = decisions.try_emplace(key);
  if (is_new) entry->second = compute_decision(call);
  return entry->second;
}

Planner::Implementation::Decision Planner::Implementation::compute_decision(const Call& call) const {
  if (hierarchy.ranks() > most_ranks) return {true, "communicator too large to plan for", {}};
  if (options.host_when_faster && options.forced_plan.empty() && host_is_faster(call))
    return {true, "the host is faster", {}};
  const Call canonical = representative(call, hierarchy.ranks());
  if (!options.forced_plan.empty())
    if (Result<Candidate> forced = named_candidate(options.forced_plan, canonical, context()); forced.ok())
      return {false, {}, std::move(*forced)};
  std::vector<Candidate> found = candidates(canonical, context(), 1);
  if (found.empty()) return {true, "no plan for this hierarchy", {}};
  return {false, {}, std::move(found.front())};
}

bool Planner::Implementation::host_is_faster(const Call& call) const {
  const bool reduce_scatter =
      call.collective == Collective::reduce_scatter || call.collective == Collective::reduce_scatter_block;
  const std::size_t segments = call.counts == nullptr ? static_cast<std::size_t>(hierarchy.ranks()) : 1;
  return reduce_scatter && hierarchy.nodes() > 1 &&
         payload_bytes(call, hierarchy.ranks()) * segments <= host_reduce_scatter_bytes;
}

// A name that fits no collective at all is a mistake; one that fits only some is not.
void Planner::Implementation::check_forced_plan() const {
  if (options.forced_plan.empty() || !options.warns) return;
  std::string first_reason;
  for (const Collective collective : {Collective::allreduce, Collective::reduce, Collective::bcast, Collective::allgather,
                                      Collective::reduce_scatter_block, Collective::gather, Collective::scatter,
                                      Collective::alltoall}) {
    const Result<Candidate> named =
        named_candidate(options.forced_plan, {.collective = collective, .count = 1}, context());
    if (named.ok()) return;
    if (first_reason.empty()) first_reason = named.status().message();
  }
  warn("PLAIT_PLAN='" + options.forced_plan + "' is not used: " + first_reason);
}

const ReadyPlan* Planner::Implementation::ready(const Call& call, const Candidate& candidate) {
  const int root = rooted(call.collective) ? call.root : 0;
  const PlanKey key{call.collective, root, call.commutative, candidate.name};
  const auto [entry, is_new] = plans.try_emplace(key);
  if (!is_new) return entry->second.get();
  Result<LoweredPlan> lowered =
      lower(candidate, call.collective, root, call.commutative, hierarchy, options.shared_memory);
  const Status status = lowered.ok() ? prove(lowered->semantics, lowered->schedules, call.commutative) : lowered.status();
  if (!status.ok()) {
    warn("plan " + candidate.name + " for " + std::string(name(call.collective)) + " is not used: " + status.message());
    return nullptr;
  }
  entry->second = std::make_unique<ReadyPlan>(
      ReadyPlan{candidate.name, lowered->semantics, std::move(lowered->schedules[static_cast<std::size_t>(rank)])});
  return entry->second.get();
}

Planner::Planner(Hierarchy hierarchy, int rank, PlannerOptions options)
    : implementation_(
          std::make_unique<Implementation>(Implementation{std::move(hierarchy), rank, std::move(options), {}, {}})) {
  if (implementation_->hierarchy.ranks() <= most_ranks) implementation_->check_forced_plan();
}

Planner::~Planner() = default;

Choice Planner::choose(const Call& call) { return implementation_->choose(call); }

const Hierarchy& Planner::hierarchy() const { return implementation_->hierarchy; }

}  // namespace plait
