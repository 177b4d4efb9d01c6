// The best plan of a small step: all options, all orders. For tests and for perf/joint_schedules.
#pragma once

#include <vector>

#include "plan/joint/list_schedule.h"
#include "plan/joint/step_graph.h"

namespace plait::plan::joint {

struct BruteForce {
  double seconds = 0;
  std::vector<int> options;
  std::vector<OrderedPiece> order;
  long schedules = 0;
};

// Every sequence of the pieces, told from one of them on, in every way in which the others are behind or ahead of it.
// More than one iteration behind or two ahead none can be: the program waits for an operation's end before it submits
// it again. Takes ((pieces - 1)! 4^(pieces - 1)) schedules for each assignment of options.
BruteForce brute_force(const StepGraph& graph);

// How many schedules that would be.
double brute_force_schedules(const StepGraph& graph);

}  // namespace plait::plan::joint
