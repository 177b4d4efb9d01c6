#include "tuner/text/plan_limit.h"

#include <algorithm>
#include <utility>

#include "core/units.h"
#include "plan/choose/call_synthesis.h"
#include "plan/choose/port_limit.h"

namespace plait::tuner {
namespace {

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
  if (const PortLimit port = port_limit(call, context); port.seconds > 0)
    raise({port.seconds,
           format_bytes(static_cast<std::size_t>(port.bytes)) + " through the busiest " + port.level + "'s port"});
  return limit;
}

}  // namespace plait::tuner
