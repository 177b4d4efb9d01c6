#include "plan/choose/motif_candidate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/algorithm/registry.h"
#include "plan/choose/call_synthesis.h"
#include "plan/motif/lowering.h"
#include "plan/motif/meaning.h"

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

// The group as a communicator of its own.
Hierarchy hierarchy_of(const Motif& motif, const Hierarchy& hierarchy) {
  std::vector<int> on_node(static_cast<std::size_t>(hierarchy.nodes()));
  for (const int vrank : motif.group) ++on_node[static_cast<std::size_t>(hierarchy.node_of(hierarchy.rank_at(vrank)))];
  std::erase(on_node, 0);
  return Hierarchy::nodes_of(on_node);
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
  const auto count = static_cast<std::size_t>(std::max(1.0, bytes));
  const Call call{.collective = motif.what, .count = count};
  if (motif.what == Collective::alltoall || motif::algorithm_of(motif, {}) == nullptr) {
    const Call exchange{.collective = Collective::alltoall, .count = count};
    const Result<Candidate> pairwise = named_candidate("pairwise", exchange, context);
    return pairwise.ok() ? pairwise->seconds : 0;
  }
  const auto levels = static_cast<int>(context.hierarchy.levels().size());
  const Program program{
      {{.what = instruct_of(motif.what), .first = 0, .last = levels - 1, .algorithm = motif::algorithm_of(motif, {})}}};
  const Result<Candidate> one = named_candidate(text(program) + " x1", call, context);
  return one.ok() ? one->seconds : 0;
}

class Pricing {
 public:
  Pricing(const Rewriting& rewriting, const Call& call, std::span<const std::int8_t> rails,
          const CandidateContext& context)
      : context_(context), rails_(rails) {
    const double bytes = static_cast<double>(payload_bytes(call, context.hierarchy.ranks()));
    const bool divided = call.counts != nullptr;  // the sum of all blocks
    unit_bytes_ = bytes / rewriting.units / (divided ? context.hierarchy.ranks() : 1);
  }

  Cost of(const Term& term) {
    if (term.kind == Term::Kind::motif) return of(term.motif);
    Cost all;
    if (term.kind == Term::Kind::sequence) {
      for (const Term& part : term.parts) {
        const Cost cost = of(part);
        all.latency += cost.latency;
        all.seconds += cost.seconds;
      }
      return all;
    }
    return in_parallel(term);
  }

 private:
  Cost of(const Motif& motif) {
    rail_ = rails_.empty() ? any_rail : rails_[number_++ % rails_.size()];
    const Hierarchy group = hierarchy_of(motif, context_.hierarchy);
    CandidateContext context{.hierarchy = group,
                             .machine = context_.machine,
                             .siblings = context_.siblings,
                             .chunk_bytes = context_.chunk_bytes,
                             .rails = context_.rails,
                             .shared_memory = context_.shared_memory};
    const double bytes = motif.payload.count * unit_bytes_;
    Cost cost{whole_pattern_seconds(motif, 1, context), whole_pattern_seconds(motif, bytes, context)};
    if (motif.whole_pattern()) return cost;
    const int transfers = motif.distances.count - (motif.distances.first == 0 ? 1 : 0);
    const double share = static_cast<double>(transfers) / (motif.members() - 1);
    return {cost.latency, cost.latency + share * (cost.seconds - cost.latency)};
  }

  // Groups beside each other, of other ranks, take the time of one.
  Cost in_parallel(const Term& term) {
    std::map<int, Cost> by_rail;
    std::map<int, std::vector<int>> seen;  // first ranks of the groups that were counted, by rail
    double longest = 0;
    for (const Term& part : term.parts) {
      const Cost cost = of(part);
      const Motif& first = *motif::motifs_of(part).front();
      std::vector<int>& firsts = seen[rail_];
      const bool beside = std::ranges::none_of(firsts, [&](int rank) { return meets(first, rank); }) && !firsts.empty();
      firsts.push_back(first.group.front());
      longest = std::max(longest, cost.seconds);
      if (beside) continue;
      Cost& rail = by_rail[rail_];
      rail.latency = std::max(rail.latency, cost.latency);
      rail.seconds += cost.seconds - cost.latency;
    }
    Cost all;
    for (const auto& [rail, cost] : by_rail) {
      all.latency = std::max(all.latency, cost.latency);
      all.seconds = std::max(all.seconds, cost.latency + cost.seconds);
    }
    all.seconds = std::max(all.seconds, longest);
    return all;
  }

  static bool meets(const Motif& motif, int rank) { return std::ranges::find(motif.group, rank) != motif.group.end(); }

  const CandidateContext& context_;
  std::span<const std::int8_t> rails_;
  double unit_bytes_ = 0;
  std::size_t number_ = 0;
  int rail_ = any_rail;  // of the motif that was looked at last
};

}  // namespace

Result<Rewriting> rewriting_of(const Candidate& candidate, Collective collective, int root, bool commutative,
                               const Hierarchy& hierarchy) {
  if (!commutative && reduces(collective))
    return {Code::unsupported, "plan " + candidate.name + ": motifs combine in no order of the ranks"};
  const Result<Rewriting> whole = motif::whole_collective(motif_of(collective), hierarchy.ranks(),
                                                          rooted(collective) ? hierarchy.vrank_of(root) : 0);
  return whole.ok() ? motif::rewrite(*whole, candidate.rules) : whole;
}

double seconds_of(const Rewriting& rewriting, const Call& call, std::span<const std::int8_t> rails,
                  const CandidateContext& context) {
  return Pricing(rewriting, call, rails, context).of(rewriting.term).seconds;
}

Result<Candidate> motif_candidate(std::string_view rules, std::span<const std::int8_t> rails, const Call& call,
                                  const CandidateContext& context) {
  Result<std::vector<motif::Rule>> parsed = motif::parse_rules(rules);
  if (!parsed.ok()) return parsed.status();
  Candidate candidate{.name = "[" + std::string(rules) + "]", .rules = std::move(*parsed)};
  candidate.rails.assign(rails.begin(), rails.end());
  const Result<Rewriting> rewriting =
      rewriting_of(candidate, call.collective, call.root, call.commutative, context.hierarchy);
  if (!rewriting.ok()) return rewriting.status();
  if (Status proven = motif::prove(*rewriting); !proven.ok()) return proven;
  candidate.seconds = seconds_of(*rewriting, call, rails, context);
  return candidate;
}

}  // namespace plait::plan
