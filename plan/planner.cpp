#include "plan/planner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/log.h"
#include "plan/candidate.h"
#include "plan/proof.h"
#include "plan/synthesis/reference.h"

namespace plait {

namespace {

// Each rank lowers and proves all ranks' schedules: a fraction of a second and some tens of megabytes for so many.
constexpr int most_ranks = 256;
// Between nodes the host's reduce_scatter of a few bytes ends in messages that nobody waits for (docs/performance.md).
constexpr std::size_t host_reduce_scatter_bytes = 512;
constexpr std::size_t most_shapes = 64;  // that a store keeps while no communicator has them

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

// P²'s own rules say more exactly what is wrong with a reduction than the rules by level: which rank, and which chunk.
Status explain(const Status& refusal, std::string_view plan, const CandidateContext& context) {
  std::vector<int> cardinalities;
  for (const Level& level : context.hierarchy.levels()) cardinalities.push_back(level.cardinality);
  const Result<Program> program = parse_program(plan.substr(0, plan.rfind(" x")));
  if (!program.ok() || !context.hierarchy.uniform()) return refusal;
  for (const Instruction& instruction : program->instructions)
    if (static_cast<int>(instruction.what) >= p2_instructs || instruction.last >= static_cast<int>(cardinalities.size()))
      return refusal;
  const Status reference = run_reference(*program, cardinalities);
  return reference.code() == Code::invalid ? reference : refusal;
}

// Ok when the plan does the call's collective here, and its proof holds.
Status check_plan(std::string_view plan, const Call& call, const CandidateContext& context) {
  const Result<Candidate> named = named_candidate(plan, call, context);
  if (!named.ok()) return explain(named.status(), plan, context);
  const Result<LoweredPlan> lowered = lower(*named, call.collective, call.root, true, context.hierarchy, true);
  return lowered.ok() ? prove(lowered->semantics, lowered->schedules, true) : lowered.status();
}

}  // namespace

namespace {

struct Decision {
  bool host = false;
  std::string_view reason;
  Candidate candidate;
};

// What the communicators of one shape share. The choice does not depend on the root or on the exact size, so that it is
// made once a class.
struct Shelf {
  using ClassKey = std::tuple<Collective, int /* size class */, bool /* commutative */>;
  using PlanKey = std::tuple<Collective, int /* root */, bool /* commutative */, std::string /* name */>;

  std::mutex guard;
  std::map<ClassKey, Decision> decisions;
  std::map<PlanKey, std::unique_ptr<ReadyPlan>> plans;
};

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// All that a choice or a plan of this rank depends on.
std::string shape_key(const Hierarchy& hierarchy, int rank, const PlannerOptions& options) {
  std::string key = options.forced_plan + '\n' + machine_json(options.machine);
  append(key, rank);
  append(key, options.chunk_bytes);
  append(key, options.host_when_faster);
  append(key, options.shared_memory);
  append(key, options.siblings);
  for (int place = 0; place < hierarchy.ranks(); ++place) append(key, hierarchy.rank_at(place));
  for (const Level& level : hierarchy.levels()) {
    append(key, level.kind);
    for (const int first : level.group_first) append(key, first);
  }
  append(key, hierarchy.nodes());
  return key;
}

}  // namespace

struct PlanStore::Implementation {
  std::mutex guard;
  std::map<std::string, std::shared_ptr<Shelf>> shelves;

  std::shared_ptr<Shelf> shelf(const std::string& key) {
    const std::scoped_lock lock(guard);
    if (shelves.size() >= most_shapes)
      std::erase_if(shelves, [](const auto& entry) { return entry.second.use_count() == 1; });
    std::shared_ptr<Shelf>& found = shelves[key];
    if (found == nullptr) found = std::make_shared<Shelf>();
    return found;
  }
};

PlanStore::PlanStore() : implementation_(std::make_unique<Implementation>()) {}
PlanStore::~PlanStore() = default;

struct Planner::Implementation {
  Hierarchy hierarchy;
  int rank;
  PlannerOptions options;
  PlanStore::Implementation* store;
  std::shared_ptr<Shelf> shelf = {};

  void take_shelf() {
    shelf = store != nullptr ? store->shelf(shape_key(hierarchy, rank, options)) : std::make_shared<Shelf>();
  }
  Choice choose(const Call& call);
  const Decision& decide(const Call& call);
  Decision compute_decision(const Call& call) const;
  CandidateContext context() const {
    return {hierarchy, options.machine, options.siblings, options.chunk_bytes};
  }
  bool host_is_faster(const Call& call) const;
  Status check_forced_plan() const;
  const ReadyPlan* ready(const Call& call, const Candidate& candidate);
};

Choice Planner::Implementation::choose(const Call& call) {
  const std::scoped_lock lock(shelf->guard);
  const Decision& decision = decide(call);
  if (decision.host) return {nullptr, decision.reason};
  const ReadyPlan* plan = ready(call, decision.candidate);
  if (plan == nullptr) return {nullptr, "plan refused by its proof"};
  return {plan, {}};
}

const Decision& Planner::Implementation::decide(const Call& call) {
  const Shelf::ClassKey key{call.collective, size_class(payload_bytes(call, hierarchy.ranks())), call.commutative};
  const auto [entry, is_new] = shelf->decisions.try_emplace(key);
  if (is_new) entry->second = compute_decision(call);
  return entry->second;
}

Decision Planner::Implementation::compute_decision(const Call& call) const {
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

// A plan that fits no collective at all is a mistake; one that fits only some is not.
Status Planner::Implementation::check_forced_plan() const {
  if (options.forced_plan.empty()) return {};
  if (hierarchy.ranks() > most_ranks) return {Code::unsupported, "communicator too large to plan for"};
  Status first_reason;
  for (const Collective collective : {Collective::allreduce, Collective::reduce, Collective::bcast, Collective::allgather,
                                      Collective::reduce_scatter_block, Collective::gather, Collective::scatter,
                                      Collective::alltoall}) {
    const Status status = check_plan(options.forced_plan, {.collective = collective, .count = 1}, context());
    if (status.ok()) return {};
    if (first_reason.ok()) first_reason = status;
  }
  return first_reason;
}

const ReadyPlan* Planner::Implementation::ready(const Call& call, const Candidate& candidate) {
  const int root = rooted(call.collective) ? call.root : 0;
  const Shelf::PlanKey key{call.collective, root, call.commutative, candidate.name};
  const auto [entry, is_new] = shelf->plans.try_emplace(key);
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

Planner::Planner(Hierarchy hierarchy, int rank, PlannerOptions options, PlanStore* store)
    : implementation_(std::make_unique<Implementation>(
          Implementation{std::move(hierarchy), rank, std::move(options),
                         store != nullptr ? store->implementation_.get() : nullptr})) {
  Implementation& planner = *implementation_;
  planner.take_shelf();
  if (planner.hierarchy.ranks() > most_ranks || !planner.options.warns) return;
  if (const Status status = planner.check_forced_plan(); !status.ok())
    warn("PLAIT_PLAN='" + planner.options.forced_plan + "' is not used: " + status.message());
}

Planner::~Planner() = default;

Choice Planner::choose(const Call& call) { return implementation_->choose(call); }

Status Planner::force(std::string plan) {
  Implementation& planner = *implementation_;
  std::swap(planner.options.forced_plan, plan);
  Status status = planner.check_forced_plan();
  if (status.ok())
    planner.take_shelf();
  else
    planner.options.forced_plan = std::move(plan);
  return status;
}

const std::string& Planner::forced_plan() const { return implementation_->options.forced_plan; }

const Hierarchy& Planner::hierarchy() const { return implementation_->hierarchy; }

}  // namespace plait
