#include "plan/choose/planner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "core/log.h"
#include "plan/choose/candidate.h"
#include "plan/choose/plan_file.h"
#include "plan/choose/port_limit.h"
#include "plan/choose/proven_plan.h"
#include "plan/choose/sweep.h"
#include "plan/lower/proof.h"
#include "plan/synthesis/reference.h"
#include "topo/hierarchy_print.h"
#include "topo/shape.h"

namespace plait::plan {

namespace {

constexpr std::size_t most_shapes = 64;  // that a store keeps while no communicator has them, or as many as they have
constexpr int most_candidates = 3;
// Each rank's schedule of an all-to-all has steps for all others: some 2 KiB a rank.
constexpr int most_exchanging_ranks = 2048;

// The collectives that a plan may be for, the likeliest first: of several reasons against it the first is told.
constexpr std::array by_interest = {
    Collective::allreduce,      Collective::reduce,     Collective::bcast,
    Collective::allgather,      Collective::allgatherv, Collective::reduce_scatter_block,
    Collective::reduce_scatter, Collective::gather,     Collective::scatter,
    Collective::barrier,        Collective::alltoall};
static_assert(by_interest.size() == planned_collectives);

// The call that stands for all of its class: the smallest size, bytes, root 0, equal segments. The choice must not
// depend on which call of a class a communicator happens to make first: communicators of the same ranks choose alike.
Call representative(const Call& call, int ranks) {
  Call canonical{.collective = call.collective, .commutative = call.commutative};
  const int number = class_of_payload(payload_bytes(call, ranks));
  canonical.count = number == 0 ? 0 : std::size_t{1} << (number - 1);
  canonical.element_bytes = number == 0 ? 0 : 1;
  if (call.counts != nullptr)
    canonical.count = std::max<std::size_t>(canonical.count / static_cast<std::size_t>(ranks), 1);
  return canonical;
}

// The program that a plan's text or a plan file's holds; an empty one when there is none.
Program program_in(std::string_view plan) {
  if (plan.starts_with('{')) {
    const Result<PlanFile> file = parse_plan_file(plan);
    return file.ok() ? file->program : Program();
  }
  const Result<Program> program = parse_program(plan.substr(0, plan.rfind(" x")));
  return program.ok() ? *program : Program();
}

// P²'s own rules say more exactly what is wrong with a reduction than the rules by level: which rank (by vrank), and
// which chunk.
Status explain(const Status& refusal, std::string_view plan, const CandidateContext& context) {
  std::vector<int> cardinalities;
  for (const Level& level : context.hierarchy.levels()) cardinalities.push_back(level.cardinality);
  const Program program = program_in(plan);
  if (program.instructions.empty() || !context.hierarchy.uniform()) return refusal;
  for (const Instruction& instruction : program.instructions)
    if (static_cast<int>(instruction.what) >= p2_instructs ||
        instruction.last >= static_cast<int>(cardinalities.size()))
      return refusal;
  const Status reference = run_reference(program, cardinalities);
  if (reference.code() != Code::invalid) return refusal;
  return {Code::invalid, "program " + text_without_algorithms(program) + ": " + reference.message()};
}

// Ok when the plan does the call's collective here, and its proof holds for this rank.
Status check_plan(std::string_view plan, const Call& call, const CandidateContext& context, int rank) {
  const Result<Candidate> named = named_candidate(plan, call, context);
  if (!named.ok())
    return call.collective == Collective::allreduce ? explain(named.status(), plan, context) : named.status();
  GroupProofs proofs;
  return proven_plan(*named, {call.collective, call.root, true, context.hierarchy}, usual_routes(context.hierarchy),
                     rank, proofs)
      .status();
}

// What a warning calls it: a plan file's text is long.
std::string label(const std::string& plan) { return plan.starts_with('{') ? "plan file" : "'" + plan + "'"; }

struct Decision {
  std::string_view host_reason;           // not empty: the host should have the call
  std::vector<Candidate> candidates;      // the cheapest first; the first that can be proven is taken
  std::map<int, const ReadyPlan*> taken;  // by the roots that were asked for; nullptr: none can be proven
};

// What the communicators of one shape share. The choice does not depend on the root or on the exact size, so that it is
// made once a class.
struct Shelf {
  using ClassKey = std::tuple<Collective, int /* size class */, bool /* commutative */, const TunedRange*>;
  using PlanKey = std::tuple<Collective, int /* root */, bool /* commutative */, std::string /* name */>;

  std::mutex guard;
  std::shared_ptr<const TuningTable> table;  // whose ranges are in the keys
  std::map<ClassKey, Decision> decisions;
  std::map<PlanKey, std::unique_ptr<ReadyPlan>> plans;
  GroupProofs proofs;
};

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& key, const std::string& text) {
  append(key, text.size());
  key.append(text);
}

void append_level(std::string& key, const LinkLevel& level) {
  append_text(key, level.name);
  for (const double value : {level.latency, level.overhead, level.cpu_seconds_per_byte, level.port_seconds_per_byte,
                             level.port_seconds_per_message})
    append(key, value);
  append(key, level.half_duplex);
  append(key, level.port_shared);
  append(key, level.network);
  append(key, level.rails);
  for (const double share : level.rail_shares) append(key, share);
  append(key, level.meeting.near);
  append(key, level.meeting.messages);
  append(key, level.meeting.ring);
  append(key, level.channels.size());
  for (const ChannelLink& link : level.channels) {
    append_text(key, link.channel);
    for (const double value : {link.latency, link.overhead, link.seconds_per_byte}) append(key, value);
  }
}

// Not its JSON, whose library needs memory to give back what it has taken, and ends the process without.
void append_machine(std::string& key, const Machine& machine) {
  append_text(key, machine.name);
  append(key, machine.levels.size());
  for (const LinkLevel& level : machine.levels) append_level(key, level);
  for (const double value : {machine.reduce_seconds_per_byte, machine.copy_seconds_per_byte,
                             machine.start_seconds_per_byte, machine.ranks_per_core})
    append(key, value);
  append(key, machine.host.size());
  for (const auto& [collective, points] : machine.host) {
    append_text(key, collective);
    append(key, points.size());
    for (const HostPoint& point : points) {
      append(key, point.bytes);
      append(key, point.seconds);
    }
  }
}

// All that a choice or a plan of this rank depends on.
std::string shape_key(const Hierarchy& hierarchy, int rank, const PlannerOptions& options) {
  std::string key = options.forced_plan + '\n';
  append_machine(key, options.machine);
  append(key, rank);
  append(key, options.chunk_bytes);
  append(key, options.host_when_faster);
  append(key, options.host);
  append(key, options.staged);
  options.routes->append_key(key);
  append(key, options.rails);
  append(key, options.siblings);
  append(key, options.table.get());
  for (const int number : topo::print_of(hierarchy)) append(key, number);
  return key;
}

}  // namespace

struct PlanStore::Implementation {
  std::mutex guard;
  std::map<std::string, std::shared_ptr<Shelf>> shelves;
  Sweep sweep{most_shapes};
  std::set<std::string> warnings;  // that were told already: many communicators have the same reason

  bool is_new_warning(const std::string& text) {
    const std::scoped_lock lock(guard);
    return warnings.insert(text).second;
  }

  std::shared_ptr<Shelf> shelf(const std::string& key) {
    const std::scoped_lock lock(guard);
    if (sweep.is_due(shelves.size())) {
      std::erase_if(shelves, [](const auto& entry) { return entry.second.use_count() == 1; });
      sweep.done(shelves.size());
    }
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
  HostSizes host_sizes;
  std::shared_ptr<Shelf> shelf = {};
  const TunedShape* tuned = nullptr;  // of the table

  void take_shelf() {
    shelf = store != nullptr ? store->shelf(shape_key(hierarchy, rank, options)) : std::make_shared<Shelf>();
    const std::scoped_lock lock(shelf->guard);
    shelf->table = options.table;
  }
  Choice choose(const Call& call);
  Choice choose(const Call& call, std::string_view rival);
  std::vector<Rival> rivals(const Call& call);
  bool is_to_choose(const Call& call) const;
  std::vector<PayloadRange> host_ranges(Form form, Collective collective) const;
  double saved_by_table(const Call& call) const;
  Decision& decide(const Call& call);
  const ReadyPlan* first_proven(const Call& call, const std::vector<Candidate>& candidates);
  Decision compute_decision(const Call& call, const TunedRange* range) const;
  void take_from_table(const Call& call, const TunedRange& range, Decision& decision) const;
  void warn_once(const std::string& text) const {
    if (options.warns && (store == nullptr || store->is_new_warning(text))) warn(text);
  }
  CandidateContext context() const {
    return {hierarchy,        options.machine,
            options.siblings, options.chunk_bytes,
            options.rails,    options.routes->shared_memory().has_value(),
            options.staged,   true};
  }
  const HostRow* host_row(const Call& call) const;
  Status check(const std::string& plan) const;
  Result<motif::PartedPlan> in_parts(const Call& call, std::string_view motifs) const;
  const ReadyPlan* ready(const Call& call, const Candidate& candidate);
};

Choice Planner::Implementation::choose(const Call& call) {
  const std::scoped_lock lock(shelf->guard);
  Decision& decision = decide(call);
  if (!decision.host_reason.empty()) return {nullptr, decision.host_reason};
  const ReadyPlan*& taken = decision.taken[rooted(call.collective) ? call.root : 0];
  if (taken == nullptr) taken = first_proven(call, decision.candidates);
  if (taken == nullptr) return {nullptr, "plan refused by its proof"};
  return {taken, {}};
}

const ReadyPlan* Planner::Implementation::first_proven(const Call& call, const std::vector<Candidate>& candidates) {
  for (const Candidate& candidate : candidates)
    if (const ReadyPlan* plan = ready(call, candidate); plan != nullptr) return plan;
  return nullptr;
}

Choice Planner::Implementation::choose(const Call& call, std::string_view rival) {
  {
    const std::scoped_lock lock(shelf->guard);
    for (const Candidate& candidate : decide(call).candidates) {
      if (candidate.name != rival) continue;
      if (const ReadyPlan* plan = ready(call, candidate); plan != nullptr) return {plan, {}};
    }
  }
  return choose(call);
}

std::vector<Rival> Planner::Implementation::rivals(const Call& call) {
  if (!options.forced_plan.empty()) return {};
  if (tuned != nullptr && tuned_range(*tuned, call, hierarchy.ranks()) != nullptr) return {};
  const std::scoped_lock lock(shelf->guard);
  const Decision& decision = decide(call);
  if (!decision.host_reason.empty()) return {};
  std::vector<Rival> found;
  for (const Candidate& candidate : decision.candidates)
    if (std::ranges::find(found, candidate.name, &Rival::name) == found.end())
      found.push_back({candidate.name, candidate.seconds});
  return found;
}

bool Planner::Implementation::is_to_choose(const Call& call) const {
  if (!options.forced_plan.empty()) return false;
  if (tuned != nullptr && tuned_range(*tuned, call, hierarchy.ranks()) != nullptr) return false;
  return host_row(representative(call, hierarchy.ranks())) == nullptr;
}

std::vector<PayloadRange> Planner::Implementation::host_ranges(Form form, Collective collective) const {
  const bool forced = !options.forced_plan.empty() && planned(collective);
  const TunedCollective* entry = nullptr;
  if (tuned != nullptr && !forced)
    for (const TunedCollective& one : tuned->collectives)
      if (one.collective == collective) entry = &one;
  std::vector<PayloadRange> ranges;
  if (entry != nullptr && options.host_when_faster)
    for (const TunedRange& range : entry->ranges)
      if (range.plan == host_plan) ranges.push_back({range.from, range.to});
  const bool plans_go_first = forced || entry != nullptr;
  for (const HostRow& row : host_sizes.rows()) {
    const bool behind_plans = planned(collective) && row.forms == every_form;
    if (!row.is_of(form, collective) || (behind_plans && plans_go_first)) continue;
    const std::size_t parts =
        row.of == HostRow::Of::all_ranks && counts_parts(collective) ? static_cast<std::size_t>(hierarchy.ranks()) : 1;
    const auto part = [&](std::size_t bytes) { return bytes / parts + (bytes % parts != 0 ? 1 : 0); };
    ranges.push_back({part(row.from), row.to == HostRow::no_limit ? row.to : part(row.to)});
  }
  return ranges;
}

double Planner::Implementation::saved_by_table(const Call& call) const {
  const bool asked = tuned != nullptr && options.forced_plan.empty();
  return asked ? saved_seconds(*tuned, call, hierarchy.ranks()) : 0;
}

Decision& Planner::Implementation::decide(const Call& call) {
  const int ranks = hierarchy.ranks();
  const TunedRange* range = tuned != nullptr ? tuned_range(*tuned, call, ranks) : nullptr;
  const Shelf::ClassKey key{call.collective, class_of_payload(payload_bytes(call, ranks)), call.commutative, range};
  const auto found = shelf->decisions.find(key);
  if (found != shelf->decisions.end()) return found->second;
  return shelf->decisions.emplace(key, compute_decision(representative(call, ranks), range)).first->second;
}

// `call` stands for its class: all ranks must decide alike, whichever calls they have seen before.
Decision Planner::Implementation::compute_decision(const Call& call, const TunedRange* range) const {
  const int most = call.collective == Collective::alltoall ? most_exchanging_ranks : most_planned_ranks;
  if (hierarchy.ranks() > most) return {reasons::too_large, {}, {}};
  Decision decision;
  if (!options.forced_plan.empty())
    if (Result<Candidate> forced = named_candidate(options.forced_plan, call, context()); forced.ok())
      decision.candidates.push_back(std::move(*forced));
  if (range != nullptr && decision.candidates.empty()) take_from_table(call, *range, decision);
  if (!decision.host_reason.empty()) return decision;
  if (decision.candidates.empty() && options.forced_plan.empty())
    if (const HostRow* row = host_row(call); row != nullptr) return {row->reason, {}, {}};
  for (Candidate& candidate : candidates(call, context(), most_candidates))
    decision.candidates.push_back(std::move(candidate));
  if (decision.candidates.empty()) decision.host_reason = reasons::no_plan;
  return decision;
}

// A plan that does not fit leaves the call to the cost model.
void Planner::Implementation::take_from_table(const Call& call, const TunedRange& range, Decision& decision) const {
  if (range.plan == host_plan) {
    if (options.host_when_faster) decision.host_reason = reasons::host_is_faster;
    return;
  }
  Result<Candidate> tuned_plan = named_candidate(range.plan, call, context());
  if (tuned_plan.ok()) return decision.candidates.push_back(std::move(*tuned_plan));
  warn_once("PLAIT_TABLE: the plan '" + range.plan + "' for " + std::string(name(call.collective)) + " of shape " +
            tuned->shape + " is not used: " + tuned_plan.status().message());
}

// `call` stands for its class: its segments are equal, and it has no list of them.
const HostRow* Planner::Implementation::host_row(const Call& call) const {
  const bool lists = call.collective == Collective::allgatherv || call.collective == Collective::reduce_scatter;
  CallSize size = call_size(call, hierarchy.ranks());
  if (lists) size.call = size.all_ranks = size.call * static_cast<std::size_t>(hierarchy.ranks());
  return host_sizes.row_of_planned(call.collective, size);
}

// A plan that fits no collective at all is a mistake; one that fits only some is not. A plan file is for one
// collective.
Status Planner::Implementation::check(const std::string& plan) const {
  if (plan.empty()) return {};
  if (hierarchy.ranks() > most_planned_ranks) return {Code::unsupported, reasons::too_large};
  Collective only = Collective::count_;
  if (plan.starts_with('{')) {
    const Result<PlanFile> file = parse_plan_file(plan);
    if (!file.ok()) return file.status();
    only = file->collective;
  }
  Status first_reason;
  for (const Collective collective : by_interest) {
    if (only != Collective::count_ && collective != only) continue;
    const Status status = check_plan(plan, {.collective = collective, .count = 1}, context(), rank);
    if (status.ok()) return {};
    if (first_reason.ok()) first_reason = status;
  }
  return first_reason;
}

const ReadyPlan* Planner::Implementation::ready(const Call& call, const Candidate& candidate) {
  const int root = rooted(call.collective) ? call.root : 0;
  const Shelf::PlanKey key{call.collective, root, call.commutative, candidate.name};
  if (const auto found = shelf->plans.find(key); found != shelf->plans.end()) return found->second.get();
  Result<OwnPlan> own = proven_plan(candidate, {call.collective, root, call.commutative, hierarchy}, *options.routes,
                                    rank, shelf->proofs);
  if (!own.ok()) {
    if (options.warns)
      warn("plan " + candidate.name + " for " + std::string(name(call.collective)) +
           " is not used: " + own.status().message());
    return shelf->plans.emplace(key, nullptr).first->second.get();
  }
  auto plan = std::make_unique<ReadyPlan>(ReadyPlan{candidate.name, own->semantics, std::move(own->schedule)});
  return shelf->plans.emplace(key, std::move(plan)).first->second.get();
}

Result<motif::PartedPlan> Planner::Implementation::in_parts(const Call& call, std::string_view motifs) const {
  if (hierarchy.ranks() > most_wholly_proven_ranks) return Status(Code::unsupported, reasons::too_large);
  const Result<Candidate> named = named_candidate(motifs, call, context());
  if (!named.ok()) return named.status();
  Result<motif::PartedPlan> parted = lower_in_parts(*named, call, hierarchy, *options.routes);
  if (!parted.ok()) return parted;
  if (Status proven = prove(parted->plan.semantics, parted->plan.schedules, call.commutative); !proven.ok())
    return proven;
  return parted;
}

int class_of_payload(std::size_t bytes) { return static_cast<int>(std::bit_width(bytes)); }

Planner::Planner(Hierarchy hierarchy, int rank, PlannerOptions options, PlanStore* store)
    : implementation_(
          std::make_unique<Implementation>(Implementation{std::move(hierarchy),
                                                          rank,
                                                          std::move(options),
                                                          store != nullptr ? store->implementation_.get() : nullptr,
                                                          {}})) {
  Implementation& planner = *implementation_;
  if (!planner.options.routes) planner.options.routes = usual_routes(planner.hierarchy);
  planner.host_sizes = HostSizes(host_entries(planner.options.table.get()),
                                 {planner.hierarchy.ranks(), planner.hierarchy.nodes() > 1, planner.options.host},
                                 planner.options.host_when_faster);
  planner.take_shelf();
  if (const TuningTable* table = planner.options.table.get(); table != nullptr)
    planner.tuned = table->shape(shape_text(planner.hierarchy, planner.options.siblings));
  if (!planner.options.warns) return;
  const Status status = planner.check(planner.options.forced_plan);
  if (status.ok()) return;
  planner.warn_once("PLAIT_PLAN: " + label(planner.options.forced_plan) + " is not used: " + status.message());
}

Planner::~Planner() = default;

Choice Planner::choose(const Call& call) { return implementation_->choose(call); }

bool Planner::chooses_by_class() const { return implementation_->tuned == nullptr; }

double Planner::saved_by_table(const Call& call) const { return implementation_->saved_by_table(call); }

bool Planner::is_to_choose(const Call& call) const { return implementation_->is_to_choose(call); }

std::vector<Rival> Planner::rivals(const Call& call) { return implementation_->rivals(call); }

double Planner::least_seconds(const Call& call) const {
  if (call.counts != nullptr) return 0;
  CandidateContext alone = implementation_->context();
  alone.siblings = 1;
  return port_limit(representative(call, hierarchy().ranks()), alone, LimitsRoot::any).seconds;
}

Choice Planner::choose(const Call& call, std::string_view rival) { return implementation_->choose(call, rival); }

Result<motif::PartedPlan> Planner::in_parts(const Call& call, std::string_view motifs) const {
  return implementation_->in_parts(call, motifs);
}

Status Planner::check(const std::string& plan) const { return implementation_->check(plan); }

void Planner::force(std::string plan) {
  implementation_->options.forced_plan = std::move(plan);
  implementation_->take_shelf();
}

const Hierarchy& Planner::hierarchy() const { return implementation_->hierarchy; }
const Routes& Planner::routes() const { return *implementation_->options.routes; }
const Machine& Planner::machine() const { return implementation_->options.machine; }
const HostSizes& Planner::host_sizes() const { return implementation_->host_sizes; }

std::vector<PayloadRange> Planner::host_ranges(Form form, Collective collective) const {
  return implementation_->host_ranges(form, collective);
}

}  // namespace plait::plan
