#include "plan/choose/candidate.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "plan/choose/call_synthesis.h"
#include "plan/choose/motif_candidates.h"
#include "plan/choose/motif_cost.h"
#include "plan/choose/plan_file.h"
#include "plan/lower/lowering.h"
#include "plan/motif/lowering.h"
#include "plan/motif/meaning.h"
#include "plan/synthesis/search.h"

namespace plait::plan {

namespace {

// Of blocks times ranks that a plan may have at all, as a user may name it.
constexpr std::int64_t most_lowered_cells = std::int64_t{1} << 22;
// Of blocks, where one rank's schedule is made.
constexpr std::int64_t most_own_cells = std::int64_t{1} << 18;

// `bytes`: of one pair's message.
std::string with_chunks(const std::string& name, int chunks) {
  return chunks == 1 ? name : name + " x" + std::to_string(chunks);
}

// Where data may be staged, the message of each pair is cut so that it follows the copies; as long as that is worth
// while.
int staged_chunks(const Call& call, const CandidateContext& context) {
  const int ranks = context.hierarchy.ranks();
  if (!context.staged) return 1;
  const int most = std::min(most_chunks_of(static_cast<double>(call.count * call.element_bytes)),
                            most_chunks_for(ranks * ranks, ranks));
  int chunks = 1;
  while (2 * chunks <= most && follows_copies_badly(static_cast<double>(call.count * call.element_bytes), chunks))
    chunks *= 2;
  return chunks;
}

std::vector<Candidate> exchange_candidates(const Call& call, const CandidateContext& context) {
  const auto bytes = static_cast<double>(payload_bytes(call, context.hierarchy.ranks()));
  const int chunks = staged_chunks(call, context);
  const ExchangeSystem system{context.hierarchy, context.machine, context.siblings, context.shared_memory};
  std::vector<Candidate> found;
  if (context.hierarchy.ranks() > most_alltoall_ranks) return found;
  for (const Exchange* exchange : all_exchanges)
    if (exchange->fits(system))
      found.push_back({with_chunks(std::string(exchange->name), chunks),
                       GridKind::flat,
                       {},
                       exchange,
                       chunks,
                       exchange->seconds(bytes, system),
                       {}});
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  return found;
}

// "pairwise, leaders or shared"
std::string exchange_names() {
  std::string names;
  for (std::size_t i = 0; i < all_exchanges.size(); ++i)
    names += (i == 0 ? "" : i + 1 < all_exchanges.size() ? ", " : " or ") + std::string(all_exchanges[i]->name);
  return names;
}

bool is_exchange(Collective collective) { return collective == Collective::alltoall; }

class Sizing {
 public:
  Sizing(const Call& call, const CandidateContext& context, const CallSynthesis& synthesis)
      : call_(call), context_(context), synthesis_(synthesis) {}

  // Nothing when the program cannot be lowered here.
  Result<Candidate> candidate(const PricedProgram& priced, bool chunks_given) const {
    const Result<int> segments =
        segments_needed(priced.program, synthesis_.grid, call_.collective, keeps_rank_order(call_));
    if (!segments.ok()) return segments.status();
    const int chunks = chunks_given ? priced.chunks : chunks_for(priced, *segments);
    return Candidate{with_chunks(text(priced.program), chunks),
                     synthesis_.kind,
                     priced.program,
                     nullptr,
                     chunks,
                     chunks == priced.chunks ? priced.seconds : seconds(priced.program, chunks),
                     {}};
  }

 private:
  int chunks_for(const PricedProgram& priced, int segments) const {
    const int most = std::min(synthesis_.options.most_chunks, most_chunks_for(segments, synthesis_.grid.ranks()));
    int chunks = priced.chunks;
    while (chunks > 1 && chunks > most) chunks /= 2;
    if (context_.chunk_bytes > 0) return chunks;
    while (2 * chunks <= most &&
           has_long_messages(context_.hierarchy.nodes(), synthesis_.options.bytes, segments, chunks) &&
           seconds(priced.program, 2 * chunks) <= (1 + cutting_may_cost) * seconds(priced.program, chunks))
      chunks *= 2;
    while (context_.staged && 2 * chunks <= most && follows_copies_badly(synthesis_.options.bytes / segments, chunks) &&
           seconds(priced.program, 2 * chunks) <= (1 + staging_may_cost) * seconds(priced.program, chunks))
      chunks *= 2;
    return chunks;
  }

  double seconds(const Program& program, int chunks) const {
    SearchOptions options = synthesis_.options;
    options.fewest_chunks = options.most_chunks = chunks;
    const auto priced = price_program(synthesis_.task, synthesis_.model, options, program);
    return priced.ok() ? priced->seconds : 0;
  }

  const Call& call_;
  const CandidateContext& context_;
  const CallSynthesis& synthesis_;
};

// "RS.2 AR.1 AG.2 x8": the number behind the program, taken off; 0 where there is none.
int take_chunks(std::string_view& text) {
  const auto space = text.rfind(' ');
  if (space == text.npos || space + 2 > text.size() || text[space + 1] != 'x') return 0;
  const std::string_view digits = text.substr(space + 2);
  int chunks = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), chunks);
  if (error != std::errc() || end != digits.data() + digits.size() || chunks < 1 || chunks > 4096) return 0;
  text = text.substr(0, space);
  return chunks;
}

// "RS.2 AR.1 AG.2 x8 @0,1": the rails behind it, taken off; none where there are none.
Result<std::vector<std::int8_t>> take_rails(std::string_view& text, int rails) {
  std::vector<std::int8_t> taken;
  const auto at = text.rfind(" @");
  if (at == text.npos) return taken;
  std::string_view list = text.substr(at + 2);
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    int rail = -1;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), rail);
    if (error != std::errc() || end != one.data() + one.size() || rail < 0 || rail >= rails)
      return Status(Code::invalid, "rail '" + std::string(one) + "': " +
                                       (rails == 0 ? "no rails are in use here"
                                                   : "expected a number from 0 to " + std::to_string(rails - 1)));
    taken.push_back(static_cast<std::int8_t>(rail));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
  }
  if (taken.empty() || text.ends_with(',')) return Status(Code::invalid, "expected numbers of rails behind the @");
  text = text.substr(0, at);
  return taken;
}

std::string listed(std::span<const int> numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "[" : " ") + std::to_string(number);
  return text + "]";
}

Result<Candidate> programmed(const Program& program, int chunks, std::span<const std::int8_t> rails, const Call& call,
                             const CandidateContext& context) {
  CallSynthesis synthesis = synthesis_of(call, context);
  bind_to_rails(synthesis, rails);
  if (chunks > 0) synthesis.options.fewest_chunks = synthesis.options.most_chunks = chunks;
  const Result<PricedProgram> priced = price_program(synthesis.task, synthesis.model, synthesis.options, program);
  if (!priced.ok()) return priced.status();
  return Sizing(call, context, synthesis).candidate(*priced, chunks > 0);
}

Result<Candidate> from_file(std::string_view json, const Call& call, const CandidateContext& context) {
  const Result<PlanFile> plan = parse_plan_file(json);
  if (!plan.ok()) return plan.status();
  if (plan->collective != call.collective)
    return Status(Code::invalid, "plan file: is for " + std::string(name(plan->collective)));
  std::vector<int> here;
  for (const Level& level : context.hierarchy.levels()) here.push_back(level.cardinality);
  if (here != plan->hierarchy)
    return Status(Code::invalid, "plan file: is for the hierarchy " + listed(plan->hierarchy) +
                                     ", not for this communicator's " + context.hierarchy.describe());
  return programmed(plan->program, plan->chunks, {}, call, context);
}

// "[segment:2,ring] @0,1"
Result<Candidate> of_motifs(std::string_view text, const Call& call, const CandidateContext& context) {
  const std::string name(text);
  const Result<std::vector<std::int8_t>> rails = take_rails(text, context.rails);
  if (!rails.ok()) return rails.status();
  if (!text.ends_with(']')) return Status(Code::invalid, "motifs '" + name + "': expected a ] behind the rules");
  Result<std::vector<motif::Rule>> rules = motif::parse_rules(text.substr(1, text.size() - 2));
  if (!rules.ok()) return rules.status();
  const auto rewriting = rewriting_of(*rules, call.collective, call.root, call.commutative, context.hierarchy);
  if (!rewriting.ok()) return Status(rewriting.status().code(), "plan " + name + ": " + rewriting.status().message());
  return Candidate{.name = name,  // plans are kept by name
                   .seconds = seconds_of(MotifPricer(context).times(*rewriting, call, *rails)),
                   .rails = *rails,
                   .rules = std::move(*rules)};
}

}  // namespace

Result<Candidate> named_candidate(std::string_view text, const Call& call, const CandidateContext& context) {
  if (text.starts_with('{')) return from_file(text, call, context);
  if (text.starts_with('[')) return of_motifs(text, call, context);
  if (is_exchange(call.collective)) {
    for (Candidate& exchange : exchange_candidates(call, context))
      if (exchange.name == text || exchange.exchange->name == text) return std::move(exchange);
    return Status(Code::invalid, "'" + std::string(text) + "' is no plan of alltoall: expected " + exchange_names());
  }
  const std::string name(text);
  Result<std::vector<std::int8_t>> rails = take_rails(text, context.rails);
  if (!rails.ok()) return rails.status();
  const int chunks = take_chunks(text);
  const Result<Program> program = parse_program(text);
  if (!program.ok()) return program.status();
  Result<Candidate> candidate = programmed(*program, chunks, *rails, call, context);
  if (!candidate.ok() || rails->empty()) return candidate;
  candidate->name += name.substr(name.rfind(" @"));  // plans are kept by name
  candidate->rails = std::move(*rails);
  return candidate;
}

namespace {

bool of_motifs(const Candidate& candidate) { return candidate.name.starts_with('['); }

std::vector<Candidate> programs(const Call& call, const CandidateContext& context, int count) {
  const CallSynthesis synthesis = synthesis_of(call, context);
  const Sizing sizing(call, context, synthesis);
  std::vector<Candidate> found;
  const auto add_cheapest = [&](const SearchOptions& options) {
    for (const PricedProgram& priced : cheapest_programs(synthesis.task, synthesis.model, options, count))
      if (Result<Candidate> candidate = sizing.candidate(priced, false);
          candidate.ok() && std::ranges::find(found, candidate->name, &Candidate::name) == found.end())
        found.push_back(std::move(*candidate));
  };
  add_cheapest(synthesis.options);
  // Programs that cut the data into segments cannot have all those chunks, so that the cheapest with so many may not be
  // those that are the cheapest with what is left.
  SearchOptions few = synthesis.options;
  few.most_chunks = std::min(few.most_chunks, most_chunks_for(synthesis.grid.ranks(), synthesis.grid.ranks()));
  if (few.fewest_chunks <= few.most_chunks && few.most_chunks < synthesis.options.most_chunks) add_cheapest(few);
  return found;
}

}  // namespace

double order_seconds(std::string_view plan, double seconds) {
  constexpr double clearly = 1.01;
  return plan.starts_with('[') ? clearly * seconds : seconds;
}

std::vector<Candidate> candidates(const Call& call, const CandidateContext& context, int count) {
  const bool exchanges = is_exchange(call.collective);
  std::vector<Candidate> found = exchanges ? exchange_candidates(call, context) : programs(call, context, count);
  const std::size_t most = exchanges ? SIZE_MAX : static_cast<std::size_t>(count);
  for (const std::string& name : motif_names(call, context))
    if (Result<Candidate> candidate = named_candidate(name, call, context); candidate.ok())
      found.push_back(std::move(*candidate));
  std::ranges::stable_sort(found, {}, [](const Candidate& one) { return order_seconds(one.name, one.seconds); });
  if (found.size() > most) found.resize(most);
  return found;
}

namespace {

std::vector<motif::Way> ways_of(const Candidate& candidate) {
  std::vector<motif::Way> ways;
  for (const std::int8_t rail : candidate.rails) ways.push_back({.rail = rail});
  return ways;
}

// What the rules make of the collective, which is proven.
Result<motif::Rewriting> proven_rewriting(const Candidate& candidate, Collective collective, int root, bool commutative,
                                          const Hierarchy& hierarchy) {
  Result<motif::Rewriting> rewriting = rewriting_of(candidate.rules, collective, root, commutative, hierarchy);
  if (!rewriting.ok()) return rewriting;
  if (Status proven = motif::prove(*rewriting); !proven.ok()) return proven;
  return rewriting;
}

}  // namespace

bool in_order(const LoweredCall& wanted) { return !wanted.commutative && reduces(wanted.collective); }

Grid grid_of(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes) {
  const bool led = rooted(wanted.collective) && !in_order(wanted);
  return grid_on(wanted.hierarchy, candidate.grid, led ? wanted.root : -1, routes.shared_memory().has_value());
}

namespace {

// All ranks' blocks, or one rank's, of a program or an exchange.
Result<Builder> build(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes, int only) {
  const Hierarchy& hierarchy = wanted.hierarchy;
  const Grid grid = grid_of(candidate, wanted, routes);
  const bool exchange = candidate.exchange != nullptr;
  const Result<int> segments =
      exchange ? Result<int>(1) : segments_needed(candidate.program, grid, wanted.collective, in_order(wanted));
  if (!segments.ok()) return segments.status();
  const bool all = only == Builder::all_ranks;
  const std::int64_t blocks = std::int64_t{*segments} * candidate.chunks;
  if (!exchange && (all ? blocks * hierarchy.ranks() > most_lowered_cells : blocks > most_own_cells))
    return Status(Code::unsupported, "plan " + candidate.name + ": cuts the data of " +
                                         std::to_string(hierarchy.ranks()) + " ranks into too many blocks");
  const Semantics semantics(wanted.collective, hierarchy.ranks(), wanted.root, *segments, candidate.chunks);
  Builder builder(semantics, routes, only);
  builder.bind_chunks(candidate.rails);
  if (exchange)
    candidate.exchange->emit(builder, hierarchy);
  else
    lower_program(candidate.program, grid, in_order(wanted), builder);
  return builder;
}

}  // namespace

Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, bool commutative,
                          const Hierarchy& hierarchy, const Routes& routes) {
  if (of_motifs(candidate)) {
    const auto rewriting = proven_rewriting(candidate, collective, root, commutative, hierarchy);
    if (!rewriting.ok()) return rewriting.status();
    return motif::lower(*rewriting, ways_of(candidate), collective, hierarchy, routes);
  }
  Result<Builder> builder = build(candidate, {collective, root, commutative, hierarchy}, routes, Builder::all_ranks);
  return builder.ok() ? builder->finish() : builder.status();
}

bool lowers_alone(const Candidate& candidate) { return !of_motifs(candidate); }

Result<OwnPlan> lower_own(const Candidate& candidate, const LoweredCall& wanted, const Routes& routes, int rank) {
  if (!lowers_alone(candidate))
    return Status(Code::unsupported, "plan " + candidate.name + ": motifs are lowered for all ranks at once");
  Result<Builder> builder = build(candidate, wanted, routes, rank);
  return builder.ok() ? builder->finish_own() : builder.status();
}

Result<LoweredPlan> lower(const Candidate& candidate, Collective collective, int root, bool commutative,
                          const Hierarchy& hierarchy) {
  return lower(candidate, collective, root, commutative, hierarchy, usual_routes(hierarchy));
}

Result<motif::PartedPlan> lower_in_parts(const Candidate& candidate, const Call& call, const Hierarchy& hierarchy,
                                         const Routes& routes) {
  if (!of_motifs(candidate)) return Status(Code::unsupported, candidate.name + ": expected motifs, as in [segment:2]");
  const auto rewriting = proven_rewriting(candidate, call.collective, call.root, call.commutative, hierarchy);
  if (!rewriting.ok()) return rewriting.status();
  return motif::lower_in_parts(*rewriting, ways_of(candidate), call.collective, hierarchy, routes);
}

}  // namespace plait::plan
