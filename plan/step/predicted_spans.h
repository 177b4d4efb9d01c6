// Where a step's tasks would lie in time on a machine.
#pragma once

#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"
#include "plan/step/step_file.h"
#include "plan/step/trace.h"
#include "topo/hierarchy.h"

namespace plait::plan::step {

// As issued: one operation at a time in the program's order, each by the rewriting that takes the least alone; of a
// step in the steady state, from its first task on. Fails (invalid) as price_step().
Result<std::vector<TaskSpan>> predicted_spans(const Step& step, const Hierarchy& hierarchy, const Machine& machine);

}  // namespace plait::plan::step
