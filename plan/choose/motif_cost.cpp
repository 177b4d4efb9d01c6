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

Instruct instruct_of(Collective what) {
  switch (what) {
    case Collective::allreduce:
      return Instruct::all_reduce;
    case Collective::reduce:
      return Instruct::reduce;
    case Collective::bcast:
      return Instruct::broadcast;
    case Collective::allgather:
      return Instruct::all_gather;
    case Collective::reduce_scatter_block:
      return Instruct::reduce_scatter;
    case Collective::gather:
      return Instruct::gather;
    default:
      return Instruct::scatter;
  }
}

struct Cost {
  double latency = 0, seconds = 0;  // of which the first is that of an empty call
};

// What a communicator of the group takes for the whole pattern, by the algorithm that the motif goes by.
double whole_pattern_seconds(const Motif& motif, double bytes, const CandidateContext& context) {
  const Algorithm* algorithm = motif::algorithm_of(motif, {});
  if (motif.what == Collective::alltoall || algorithm == nullptr)
    return exchanges::pairwise.seconds(bytes,
                                       {context.hierarchy, context.machine, context.siblings, context.shared_memory});
  const Call call{.collective = motif.what, .count = static_cast<std::size_t>(std::max(1.0, bytes))};
  CallSynthesis synthesis = synthesis_of(call, context);
  synthesis.options.fewest_chunks = synthesis.options.most_chunks = 1;
  const auto levels = static_cast<int>(context.hierarchy.levels().size());
  const Program program{{{.what = instruct_of(motif.what), .first = 0, .last = levels - 1, .algorithm = algorithm}}};
  const auto priced = price_program(synthesis.task, synthesis.model, synthesis.options, program);
  return priced.ok() ? priced->seconds : 0;
}

class Pricing {
 public:
  Pricing(const Rewriting& rewriting, const Call& call, std::span<const std::int8_t> rails,
          const CandidateContext& context)
      : context_(context), rails_(rails), shares_(rail_shares(context.machine)) {
    const double bytes = static_cast<double>(payload_bytes(call, context.hierarchy.ranks()));
    const bool divided = call.counts != nullptr;  // the sum of all blocks
    unit_bytes_ = bytes / rewriting.units / (divided ? context.hierarchy.ranks() : 1);
  }

  // Notes when each motif runs.
  Cost of(const Term& term, double begin) {
    if (term.kind == Term::Kind::motif) return of(term.motif, begin);
    if (term.kind == Term::Kind::parallel) return in_parallel(term, begin);
    Cost all;
    for (const Term& part : term.parts) {
      const Cost cost = of(part, begin + all.seconds);
      all.latency += cost.latency;
      all.seconds += cost.seconds;
    }
    return all;
  }

  std::vector<MotifTime> take_times() { return std::move(times_); }

 private:
  Cost of(const Motif& motif, double begin) {
    rail_ = rails_.empty() ? any_rail : rails_[number_++ % rails_.size()];
    const Hierarchy group = Hierarchy::nodes_of(on_nodes(motif, context_.hierarchy));
    CandidateContext context{.hierarchy = group,
                             .machine = context_.machine,
                             .siblings = context_.siblings,
                             .chunk_bytes = context_.chunk_bytes,
                             .rails = context_.rails,
                             .shared_memory = context_.shared_memory};
    const double bytes = motif.payload.count * unit_bytes_;
    Cost cost{whole_pattern_seconds(motif, 1, context), whole_pattern_seconds(motif, bytes, context)};
    if (rail_ != any_rail) {
      const double share = shares_[std::min(static_cast<std::size_t>(rail_), shares_.size() - 1)];
      cost.seconds = cost.latency + (cost.seconds - cost.latency) / share;
    }
    if (!motif.whole_pattern()) {
      const int transfers = motif.distances.count - (motif.distances.first == 0 ? 1 : 0);
      const double share = static_cast<double>(transfers) / (motif.members() - 1);
      cost.seconds = cost.latency + share * (cost.seconds - cost.latency);
    }
    times_.push_back({&motif, rail_, begin, begin + cost.seconds});
    return cost;
  }

  // What a rail has so far: motifs that follow each other, and the ranks of those that begin with the latest one.
  struct Occupied {
    double latency = 0, seconds = 0;  // of which latency is none
    double latest = 0;                // its begin
    std::vector<int> ranks = {};
  };

  Cost in_parallel(const Term& term, double begin) {
    std::map<int, Occupied> by_rail;
    Cost all;
    for (const Term& part : term.parts) {
      const std::size_t first = times_.size();
      Occupied& rail = by_rail[next_rail()];
      const std::vector<int>& group = motif::motifs_of(part).front()->group;
      const bool beside = !rail.ranks.empty() && std::ranges::none_of(group, [&](int rank) {
        return std::ranges::find(rail.ranks, rank) != rail.ranks.end();
      });
      const double at = beside ? rail.latest : begin + rail.seconds;
      const Cost cost = of(part, at);
      if (!beside) {
        rail.ranks.clear();
        rail.seconds += cost.seconds - cost.latency;
      }
      rail.latest = at;
      rail.latency = std::max(rail.latency, cost.latency);
      rail.ranks.insert(rail.ranks.end(), group.begin(), group.end());
      for (std::size_t i = first; i < times_.size(); ++i) all.seconds = std::max(all.seconds, times_[i].end - begin);
    }
    for (const auto& [number, rail] : by_rail) all.latency = std::max(all.latency, rail.latency);
    return all;
  }

  int next_rail() const { return rails_.empty() ? any_rail : rails_[number_ % rails_.size()]; }

  const CandidateContext& context_;
  std::span<const std::int8_t> rails_;
  std::vector<double> shares_;
  double unit_bytes_ = 0;
  std::size_t number_ = 0;
  int rail_ = any_rail;  // of the motif that was looked at last
  std::vector<MotifTime> times_;
};

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

std::vector<MotifTime> motif_times(const Rewriting& rewriting, const Call& call, std::span<const std::int8_t> rails,
                                   const CandidateContext& context) {
  Pricing pricing(rewriting, call, rails, context);
  pricing.of(rewriting.term, 0);
  return pricing.take_times();
}

double seconds_of(std::span<const MotifTime> times) {
  double last = 0;
  for (const MotifTime& time : times) last = std::max(last, time.end);
  return last;
}

}  // namespace plait::plan
