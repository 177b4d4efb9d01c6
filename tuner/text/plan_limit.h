// The least time that a machine leaves a call, whatever the plan. Pure.
#pragma once

#include <string>

#include "plan/choose/candidate.h"
#include "plan/model/collective.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct PlanLimit {
  double seconds = 0;
  std::string because;  // "6 MiB through a node's port"
};

// The longest of: what each network's busiest port must carry in one direction (`plait bench` has the same bytes,
// docs/bench.md), or in both where they share the rate; on one node, the best plan's time were there only bytes, no
// latencies, overheads and message rates; and one latency between the outermost groups. No plan is predicted to be
// faster, but where the model knows less than this: it takes all nodes to be as large as the largest, and the exchanges
// of alltoall to cross one network whose directions have a rate each. The root of a rooted collective is rank 0.
PlanLimit plan_limit(const Call& call, const CandidateContext& context);

}  // namespace plait::tuner
