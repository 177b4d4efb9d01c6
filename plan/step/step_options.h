// A program's step on a machine, as the joint optimizer takes it (plan/joint): each operation's rewritings, with their
// predicted times and the rails that they go over.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/joint/step_graph.h"
#include "plan/model/machine.h"
#include "plan/step/step_file.h"
#include "topo/hierarchy.h"

namespace plait::plan::step {

// An operation's plan in a schedule that is not cut: the one that the planner takes for such a call.
inline constexpr const char* default_plan = "default";

struct OptionLimits {
  int depth = 2;                          // rules of a rewriting at most
  std::vector<int> segments = {2, 4, 8};  // into so many a payload may be cut
  int most_options = 24;                  // of an operation: the quickest alone, and those of each way over the rails
  double load = 0;                        // that a motif takes from computation beside it
};

// The channels are the rails of the machine's network, in their order; within a single node its memory.
struct PricedStep {
  joint::StepGraph graph;                        // tasks as the step's
  std::vector<std::vector<std::string>> motifs;  // by task, option and piece, joined: what the pieces are
};

// Fails (invalid) where the step names what does not fit together.
Result<PricedStep> price_step(const Step& step, const Hierarchy& hierarchy, const Machine& machine,
                              const OptionLimits& limits);

}  // namespace plait::plan::step
