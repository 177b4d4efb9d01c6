#include "plan/choose/motif_cost.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/algorithm/exchange.h"
#include "plan/algorithm/registry.h"
#include "plan/choose/call_synthesis.h"
#include "plan/motif/lowering.h"
#include "plan/synthesis/search.h"

namespace plait::plan {
namespace {

using motif::Motif;
using motif::Rewriting;
using motif::Term;

// Its blocks may differ in length, which a motif need not know.
Collective motif_of(Collective collective) {
  if (collective == Collective::allgatherv) return Collective::allgather;
  return collective == Collective::reduce_scatter ? Collective::reduce_scatter_block : collective;
}

}  // namespace

Result<Rewriting> rewriting_of(std::span<const motif::Rule> rules, Collective collective, int root, bool commutative,
                               const Hierarchy& hierarchy) {
  if (!commutative && reduces(collective)) return {Code::unsupported, "motifs combine in no order of the ranks"};
  const Result<Rewriting> whole = motif::whole_collective(motif_of(collective), hierarchy.ranks(),
                                                          rooted(collective) ? hierarchy.vrank_of(root) : 0);
  return whole.ok() ? motif::rewrite(*whole, rules) : whole;
}

std::vector<int> on_nodes(const Motif& motif, const Hierarchy& hierarchy) {
  std::vector<int> on_node(static_cast<std::size_t>(hierarchy.nodes()));
  for (const int vrank : motif.group) ++on_node[static_cast<std::size_t>(hierarchy.node_of(hierarchy.rank_at(vrank)))];
  std::erase(on_node, 0);
  return on_node;
}

std::vector<double> rail_shares(const Machine& machine) {
  for (const LinkLevel& level : machine.levels) {
    if (!level.network || level.rails < 2) continue;
    if (!level.rail_shares.empty()) return level.rail_shares;
    return std::vector<double>(static_cast<std::size_t>(level.rails), 1.0 / level.rails);
  }
  return {1};
}

std::vector<int> deal(std::size_t parts, const std::vector<double>& shares) {
  std::vector<double> load(shares.size(), 0);
  std::vector<int> rails;
  for (std::size_t part = 0; part < parts; ++part) {
    std::size_t best = 0;
    for (std::size_t rail = 1; rail < shares.size(); ++rail)
      if ((load[rail] + 1) / shares[rail] < (load[best] + 1) / shares[best]) best = rail;
    load[best] += 1;
    rails.push_back(static_cast<int>(best));
  }
  return rails;
}

namespace {

Machine without_overheads(Machine machine) {
  for (LinkLevel& level : machine.levels) level.overhead = level.port_seconds_per_message = 0;
  return machine;
}

// Ranks as bits: whether two motifs meet is asked for all pairs.
using Ranks = std::vector<std::uint64_t>;

Ranks ranks_of(const Motif& motif) {
  Ranks ranks;
  for (const int rank : motif.group) {
    const auto word = static_cast<std::size_t>(rank) / 64;
    if (ranks.size() <= word) ranks.resize(word + 1);
    ranks[word] |= std::uint64_t{1} << (rank % 64);
  }
  return ranks;
}

bool meet(const Ranks& a, const Ranks& b) {
  for (std::size_t word = 0; word < std::min(a.size(), b.size()); ++word)
    if ((a[word] & b[word]) != 0) return true;
  return false;
}

}  // namespace

// Motifs from the left, each as early as what is before it in a sequence, and its rail, allow.
class MotifPricer::Placing {
 public:
  Placing(MotifPricer& pricer, const Rewriting& rewriting, double unit_bytes, std::span<const std::int8_t> rails)
      : pricer_(pricer),
        unit_bytes_(unit_bytes),
        rails_(rails),
        dealt_(motif::dealt_ways(rewriting.term, std::max<std::size_t>(rails.size(), 1))) {
    place(rewriting.term, 0);
  }

  std::vector<MotifTime> take() { return std::move(times_); }

 private:
  // On a rail, or on all of them: since when these ranks are through with it.
  struct Occupied {
    int rail;
    double until;
    Ranks ranks;
  };

  // Returns the end of the last.
  double place(const Term& term, double ready) {
    if (term.kind == Term::Kind::motif) return place(term.motif, ready);
    double end = ready;
    for (const Term& part : term.parts) {
      const double last = place(part, term.kind == Term::Kind::sequence ? end : ready);
      end = std::max(end, last);
    }
    return end;
  }

  double place(const Motif& motif, double ready) {
    const std::size_t number = times_.size();
    const int rail = rails_.empty() ? any_rail : rails_[dealt_[number]];
    const MotifPrice price = pricer_.price(motif, motif.payload.count * unit_bytes_);
    double busy = price.seconds - price.latency;
    if (rail != any_rail) busy /= pricer_.shares_[std::min(static_cast<std::size_t>(rail), pricer_.shares_.size() - 1)];
    Ranks ranks = ranks_of(motif);
    double begin = ready;
    for (const Occupied& other : occupied_)
      if ((rail == any_rail || other.rail == any_rail || other.rail == rail) && meet(ranks, other.ranks))
        begin = std::max(begin, other.until);
    occupied_.push_back({rail, begin + busy, std::move(ranks)});
    times_.push_back({&motif, rail, begin, begin + price.latency + busy});
    return times_.back().end;
  }

  MotifPricer& pricer_;
  double unit_bytes_;
  std::span<const std::int8_t> rails_;
  std::vector<std::size_t> dealt_;
  std::vector<Occupied> occupied_;
  std::vector<MotifTime> times_;
};

MotifPricer::MotifPricer(const CandidateContext& context)
    : context_(context), bare_(without_overheads(context.machine)), shares_(rail_shares(context.machine)) {}

double MotifPricer::whole_pattern_seconds(const Motif& motif, std::size_t bytes, const Machine& machine) const {
  const Hierarchy group = Hierarchy::nodes_of(on_nodes(motif, context_.hierarchy));
  const Algorithm* algorithm = motif::algorithm_of(motif, {});
  // Parts of a pattern go directly.
  if (motif.what == Collective::alltoall || algorithm == nullptr)
    return exchanges::pairwise.seconds(static_cast<double>(bytes),
                                       {group, machine, context_.siblings, context_.shared_memory});
  const Call call{.collective = motif.what, .count = bytes};
  CallSynthesis synthesis = synthesis_of(call, {.hierarchy = group,
                                                .machine = machine,
                                                .siblings = context_.siblings,
                                                .chunk_bytes = context_.chunk_bytes,
                                                .rails = context_.rails,
                                                .shared_memory = context_.shared_memory});
  synthesis.options.fewest_chunks = synthesis.options.most_chunks = 1;
  const auto levels = static_cast<int>(group.levels().size());
  const Program program{
      {{.what = motif::instruct_of(motif.what), .first = 0, .last = levels - 1, .algorithm = algorithm}}};
  const auto priced = price_program(synthesis.task, synthesis.model, synthesis.options, program);
  return priced.ok() ? priced->seconds : 0;
}

// Of parts of a pattern so many of the whole one's messages.
MotifPrice MotifPricer::price(const Motif& motif, double bytes) {
  constexpr double most = 1e15;  // as a size
  const auto whole = static_cast<std::size_t>(std::clamp(bytes, 1.0, most));
  const auto [entry, fresh] =
      known_.try_emplace(Key{motif.what, motif.whole_pattern(), whole, on_nodes(motif, context_.hierarchy)});
  MotifPrice& known = entry->second;
  if (fresh) {
    known.seconds = whole_pattern_seconds(motif, whole, context_.machine);
    known.latency = std::min(known.seconds, whole_pattern_seconds(motif, 1, bare_));
  }
  if (motif.whole_pattern()) return known;
  const int transfers = motif.distances.count - (motif.distances.first == 0 ? 1 : 0);
  const double share = static_cast<double>(transfers) / std::max(1, motif.members() - 1);
  return {transfers > 0 ? known.latency : 0,
          (transfers > 0 ? known.latency : 0) + share * (known.seconds - known.latency)};
}

std::vector<MotifTime> MotifPricer::times(const Rewriting& rewriting, const Call& call,
                                          std::span<const std::int8_t> rails) {
  const double bytes = static_cast<double>(payload_bytes(call, context_.hierarchy.ranks()));
  const bool divided = call.counts != nullptr;  // the sum of all blocks
  const double unit_bytes = bytes / rewriting.units / (divided ? context_.hierarchy.ranks() : 1);
  return Placing(*this, rewriting, unit_bytes, rails).take();
}

double seconds_of(std::span<const MotifTime> times) {
  double last = 0;
  for (const MotifTime& time : times) last = std::max(last, time.end);
  return last;
}

}  // namespace plait::plan
