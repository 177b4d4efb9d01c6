#include "tuner/text/plan_limit.h"

#include <algorithm>
#include <utility>

#include "core/units.h"
#include "plan/choose/call_synthesis.h"
#include "tuner/text/job_shape.h"

namespace plait::tuner {
namespace {

// The children of a level in the place of a job's nodes.
JobShape ports_of(const Level& level, int ranks) {
  JobShape job;
  for (std::size_t child = 0; child < level.group_first.size(); ++child) {
    const int end = child + 1 < level.group_first.size() ? level.group_first[child + 1] : ranks;
    job.ranks_on_node.push_back(end - level.group_first[child]);
    job.node_of.resize(static_cast<std::size_t>(end), static_cast<int>(child));
  }
  return job;
}

// As nic_bytes() counts a call's size.
std::size_t bench_bytes(const Call& call, int ranks) {
  const std::size_t bytes = payload_bytes(call, ranks), all = static_cast<std::size_t>(ranks);
  if (call.collective == Collective::reduce_scatter_block) return bytes * all;
  return call.collective == Collective::allgatherv ? bytes / all : bytes;
}

// Whether as much leaves a port as enters it, in the mean over the ports.
bool fills_both_ways(const JobShape& job, Collective collective) {
  const bool even = std::ranges::all_of(job.ranks_on_node, [&](int here) { return here == job.ranks_on_node.front(); });
  switch (collective) {
    case Collective::allreduce:
      return true;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
    case Collective::alltoall:
      return even;
    default:
      return false;
  }
}

PlanLimit limit_of_port(const Call& call, const CandidateContext& context, std::size_t l, const LinkLevel& link) {
  const Hierarchy& hierarchy = context.hierarchy;
  const JobShape job = ports_of(hierarchy.levels()[l], hierarchy.ranks());
  const double ways = link.half_duplex && fills_both_ways(job, call.collective) ? 2 : 1;
  const double communicators = job.nodes() <= hierarchy.nodes() && hierarchy.nodes() > 1 ? context.siblings : 1;
  const double bytes = ways * communicators * nic_bytes(job, call.collective, bench_bytes(call, hierarchy.ranks()), 0);
  return {bytes * link.port_seconds_per_byte,
          format_bytes(static_cast<std::size_t>(bytes)) + " through the busiest " + link.name + "'s port"};
}

// Where nothing but bytes takes time.
double seconds_of_bytes(const Call& call, const CandidateContext& context) {
  Machine bytes_only = context.machine;
  for (LinkLevel& link : bytes_only.levels) link.latency = link.overhead = link.port_seconds_per_message = 0;
  const CandidateContext changed{.hierarchy = context.hierarchy, .machine = bytes_only, .siblings = context.siblings};
  double least = 0;
  for (const auto* on : {&changed, &context})  // the search is exact to a hundredth
    for (const Candidate& candidate : candidates(call, *on, 1))
      least = on == &changed ? candidate.seconds : std::min(least, candidate.seconds);
  return least;
}

}  // namespace

PlanLimit plan_limit(const Call& call, const CandidateContext& context) {
  const GroupModel model = group_model(context.machine, context.hierarchy, context.siblings);
  if (model.levels.empty()) return {};
  const LinkLevel& outermost = model.levels.front().link;
  PlanLimit limit{outermost.latency, "the way of one message"};
  const auto raise = [&](PlanLimit other) {
    if (other.seconds > limit.seconds) limit = std::move(other);
  };
  if (context.hierarchy.nodes() == 1) raise({seconds_of_bytes(call, context), "the bytes alone, within the node"});
  for (std::size_t l = 0; l < model.levels.size() && context.hierarchy.nodes() > 1; ++l)
    if (l == 0 || model.levels[l].link.network) raise(limit_of_port(call, context, l, model.levels[l].link));
  return limit;
}

}  // namespace plait::tuner
