// What no plan of a step can be faster than, whatever its options and order. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/joint/step_graph.h"

namespace plait::plan::joint {

// Seconds of an iteration in the steady state, on average.
struct LowerBound {
  // The longest circle of dependencies (the maximum cycle ratio) with every operation's shortest option.
  double circle = 0;
  // The busiest channel with the best fractional assignment of options. Computation is one more channel, from which
  // pieces beside it take their load.
  double channels = 0;
  // The same together with ways through the program (option_mixture.h).
  double mixture = 0;
  // Channels between two passes of the program by the same place: operations that are submitted a while after the first
  // and needed a while before the second all run between (Jackson's preemptive schedule: "An Algorithm for Solving the
  // Job-Shop Problem", Carlier and Pinson, Management Science 1989, section 2).
  double windows = 0;

  double seconds() const { return std::max({circle, channels, mixture, windows}); }
};

struct Relaxation {
  LowerBound bound;
  // By task and option: how much of the operation is done by it where options can be mixed. A hint where to look for
  // plans.
  std::vector<std::vector<double>> mixture;
};

// Precondition: validate(graph).ok().
Relaxation relaxation(const StepGraph& graph);
LowerBound lower_bound(const StepGraph& graph);

// By task: an option of the mixture for each operation, such that after each the channels' work so far is about that of
// the mixture.
std::vector<int> rounded(const StepGraph& graph, const std::vector<std::vector<double>>& mixture);

}  // namespace plait::plan::joint
