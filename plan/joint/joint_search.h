// Options and order of a step's operations, chosen together: the probabilistic search of Syndicate (NSDI '23, section
// 4.3.1, Pseudocode 1). Deterministic by seed and number of chains, where only the number of schedules ends it. It does
// no I/O; the clock, where time ends it, can be given.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/joint/lower_bound.h"
#include "plan/joint/search_freedom.h"
#include "plan/joint/step_graph.h"
#include "plan/joint/step_simulation.h"

namespace plait::plan::joint {

struct JointSearchOptions {
  OptionFreedom options = OptionFreedom::all;
  OrderFreedom order = OrderFreedom::all;
  std::uint64_t seed = 1;
  int chains = 1;  // at the same time, each in a thread
  // The search ends after so much time or so many schedules (of all chains together; 0: no such limit), when the plan
  // is as good as the lower bound, or when more than half of what was spent has brought nothing better (Pseudocode 1):
  // of the time, or of the schedules where time is no limit. The latter not before a tenth is spent.
  double seconds = 1;
  long schedules = 0;
  // Seconds since any time, from any thread. Empty: the steady clock.
  std::function<double()> clock = {};
};

struct JointPlan {
  std::vector<int> options;         // by task; 0 for computation
  std::vector<OrderedPiece> order;  // of all pieces in a period; empty for OrderFreedom::as_issued and lifo
  // Each channel's part of it: what an enforcer keeps to. A piece on several channels stands in the order of each.
  std::vector<std::vector<OrderedPiece>> channel_order;
  double seconds = 0;         // predicted, of an iteration
  double greedy_seconds = 0;  // of greedy options in the best order of the policies: what the search began with
  LowerBound bound;
  long schedules = 0;  // tried
  double spent = 0;    // seconds of searching
};

// Preconditions: validate(graph).ok(); there is a limit.
JointPlan joint_search(const StepGraph& graph, const JointSearchOptions& options);

}  // namespace plait::plan::joint
