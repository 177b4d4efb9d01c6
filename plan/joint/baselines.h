// What a step takes as others would plan it: the comparisons of Syndicate (NSDI '23, section 6.4). Predicted.
#pragma once

#include "plan/joint/joint_search.h"

namespace plait::plan::joint {

// Seconds of an iteration.
struct Baselines {
  double as_issued = 0;     // greedy options, one operation at a time as issued: the library beneath a program
  double lifo = 0;          // BS+: ByteScheduler's order; the segments of each operation by search, not by rule
  JointPlan schedule_only;  // S-Sched without segments: greedy options in the best order
  double schedule_and_segments = 0;  // S-Sched: the same with segments by search
  JointPlan execution_only;          // S-Exec: the best options, each channel in the order of the program
  JointPlan joint;
};

// Those that need no more than a search, each with the limits of `options`.
double as_issued(const StepGraph& graph, const JointSearchOptions& options);
double last_in_first_out(const StepGraph& graph, const JointSearchOptions& options);

// Each search has the limits of `options`; what else it says about freedom is left aside.
Baselines baselines(const StepGraph& graph, const JointSearchOptions& options);

}  // namespace plait::plan::joint
