#include "plan/planner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <tuple>

#include "core/log.h"
#include "plan/family.h"
#include "plan/proof.h"

namespace plait {

namespace {

// Each rank lowers and simulates all ranks' schedules: a fraction of a second and some tens of megabytes for so many.
constexpr int most_ranks = 256;
// Between nodes the host's reduce_scatter of a few bytes ends in messages that nobody waits for (docs/performance.md).
constexpr std::size_t host_reduce_scatter_bytes = 512;
constexpr int most_chunks = 64;
// A plan of more blocks times ranks than this is not cut into still more chunks: simulating it would take longer than
// the collective gains.
constexpr std::size_t simulation_limit = std::size_t{1} << 14;

constexpr std::size_t shortest_chunk_bytes = std::size_t{16} << 10;
constexpr std::size_t longest_message_bytes = std::size_t{64} << 10;
constexpr double cutting_may_cost = 0.02;
constexpr double forced_bonus_seconds = 1e9;  // puts the plans that the user named before all others

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

// Into how many segments the size of a call is cut; 1 where the size is that of a segment.
int vector_parts(const Semantics& semantics) {
  switch (semantics.collective()) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
      return semantics.segments();
    default:
      return 1;
  }
}

struct Sized {
  Candidate candidate;
  int chunks;
};

std::string label(const Sized& sized) {
  return sized.chunks == 1 ? sized.candidate.name : sized.candidate.name + " x" + std::to_string(sized.chunks);
}

}  // namespace

struct Planner::Implementation {
  // The choice does not depend on the root or on the exact size, so that it is made once a class.
  using ClassKey = std::tuple<Collective, int /* size class */, bool /* commutative */>;
  using PlanKey = std::tuple<Collective, int /* root */, bool /* commutative */, std::string /* label */>;

  struct Decision {
    bool host = false;
    std::string_view reason;
    Sized sized;
  };

  Hierarchy hierarchy;
  int rank;
  PlannerOptions options;
  std::map<ClassKey, Decision> decisions;
  std::map<PlanKey, std::unique_ptr<ReadyPlan>> plans;

  Choice choose(const Call& call);
  const Decision& decide(const Call& call);
  Decision compute_decision(const Call& call) const;
  std::pair<int, double> best_chunks(const Candidate& candidate, const Call& call) const;
  bool is_forced(const Candidate& candidate) const;
  bool host_is_faster(const Call& call) const;
  Status check_forced_plan() const;
  const ReadyPlan* ready(const Call& call, const Sized& sized);
};

Choice Planner::Implementation::choose(const Call& call) {
  const Decision& decision = decide(call);
  if (decision.host) return {nullptr, decision.reason};
  const ReadyPlan* plan = ready(call, decision.sized);
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
  Decision best;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates(call.collective, hierarchy, call.commutative)) {
    const auto [chunks, predicted] = best_chunks(candidate, canonical);
    const double rank_by = is_forced(candidate) ? predicted - forced_bonus_seconds : predicted;
    if (rank_by >= best_seconds) continue;
    best_seconds = rank_by;
    best = {false, {}, {candidate, chunks}};
  }
  if (best_seconds == std::numeric_limits<double>::infinity()) return {true, "no plan for this hierarchy", {}};
  return best;
}

bool Planner::Implementation::host_is_faster(const Call& call) const {
  const bool reduce_scatter =
      call.collective == Collective::reduce_scatter || call.collective == Collective::reduce_scatter_block;
  const std::size_t segments = call.counts == nullptr ? static_cast<std::size_t>(hierarchy.ranks()) : 1;
  return reduce_scatter && hierarchy.nodes() > 1 &&
         payload_bytes(call, hierarchy.ranks()) * segments <= host_reduce_scatter_bytes;
}

// A name that fits no plan at all is a mistake; one that fits only some collectives is not.
Status Planner::Implementation::check_forced_plan() const {
  if (options.forced_plan.empty()) return {};
  std::string known;
  for (int c = 0; c < collective_count; ++c)
    for (const bool commutative : {true, false})
      for (const Candidate& candidate : candidates(static_cast<Collective>(c), hierarchy, commutative)) {
        if (is_forced(candidate)) return {};
        if (known.find(candidate.name) == std::string::npos) known += (known.empty() ? "'" : ", '") + candidate.name + "'";
      }
  return {Code::invalid, "plan '" + options.forced_plan + "' is part of no plan's name here; expected part of one of " + known};
}

bool Planner::Implementation::is_forced(const Candidate& candidate) const {
  return !options.forced_plan.empty() && candidate.name.find(options.forced_plan) != std::string::npos;
}

// The number of chunks with the shortest predicted time. Messages shorter than about 16 KiB gain nothing, and once more
// chunks make it slower, still more do as well. Long messages over the network are cut even where the model sees no gain
// in it: a rank that gets its core late then holds up a piece, not the whole.
std::pair<int, double> Planner::Implementation::best_chunks(const Candidate& candidate, const Call& call) const {
  const std::size_t bytes = call.count * call.element_bytes;
  std::pair<int, double> best = {1, std::numeric_limits<double>::infinity()};
  for (int chunks = 1; chunks <= most_chunks; chunks *= 2) {
    const std::size_t chunk = bytes / static_cast<std::size_t>(chunks);
    const bool larger_than_asked = options.chunk_bytes > 0 && chunk > options.chunk_bytes;
    if (candidate.pipelined && larger_than_asked && chunks < most_chunks) continue;
    const Result<LoweredPlan> lowered =
        lower(candidate, call.collective, call.root, chunks, hierarchy, options.shared_memory);
    if (!lowered.ok()) break;
    const double predicted =
        predict_seconds({lowered->schedules, &lowered->semantics, &hierarchy}, call, options.machine);
    const std::size_t message = chunk / static_cast<std::size_t>(vector_parts(lowered->semantics));
    const bool cut_anyway = hierarchy.nodes() > 1 && 2 * message > longest_message_bytes;
    if (predicted >= best.second * (cut_anyway ? 1 + cutting_may_cost : 1)) break;
    best = {chunks, predicted};
    const std::size_t blocks = lowered->semantics.blocks();
    if (!candidate.pipelined || options.chunk_bytes > 0 || chunk < shortest_chunk_bytes ||
        blocks * 2 * static_cast<std::size_t>(hierarchy.ranks()) > simulation_limit)
      break;
  }
  return best;
}

const ReadyPlan* Planner::Implementation::ready(const Call& call, const Sized& sized) {
  const PlanKey key{call.collective, rooted(call.collective) ? call.root : 0, call.commutative, label(sized)};
  const auto [entry, is_new] = plans.try_emplace(key);
  if (!is_new) return entry->second.get();
  const int root = rooted(call.collective) ? call.root : 0;
  Result<LoweredPlan> lowered =
      lower(sized.candidate, call.collective, root, sized.chunks, hierarchy, options.shared_memory);
  Status status = lowered.ok() ? prove(lowered->semantics, lowered->schedules, call.commutative) : lowered.status();
  if (!status.ok()) {
    warn("plan " + label(sized) + " for " + std::string(name(call.collective)) + " is not used: " + status.message());
    return nullptr;
  }
  entry->second = std::make_unique<ReadyPlan>(
      ReadyPlan{label(sized), lowered->semantics, std::move(lowered->schedules[static_cast<std::size_t>(rank)])});
  return entry->second.get();
}

Planner::Planner(Hierarchy hierarchy, int rank, PlannerOptions options)
    : implementation_(
          std::make_unique<Implementation>(Implementation{std::move(hierarchy), rank, std::move(options), {}, {}})) {
  if (implementation_->hierarchy.ranks() > most_ranks || !implementation_->options.warns) return;
  if (const Status status = implementation_->check_forced_plan(); !status.ok()) warn("PLAIT_PLAN: " + status.message());
}

Planner::~Planner() = default;

Choice Planner::choose(const Call& call) { return implementation_->choose(call); }

Status Planner::force(std::string plan) {
  Implementation& planner = *implementation_;
  std::swap(planner.options.forced_plan, plan);
  Status status = planner.check_forced_plan();
  if (status.ok())
    planner.decisions.clear();
  else
    planner.options.forced_plan = std::move(plan);
  return status;
}

const std::string& Planner::forced_plan() const { return implementation_->options.forced_plan; }

const Hierarchy& Planner::hierarchy() const { return implementation_->hierarchy; }

}  // namespace plait
