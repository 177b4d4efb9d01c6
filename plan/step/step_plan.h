// From a step to its schedule, as one call: priced, searched, written down.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/joint/joint_search.h"
#include "plan/step/schedule_file.h"
#include "plan/step/step_file.h"
#include "plan/step/step_options.h"

namespace plait::plan::step {

// Of a joint plan for the priced step: `seconds` are the plan's, `as_issued_seconds` is left 0.
StepSchedule schedule_of(const Step& step, int ranks, const PricedStep& priced, const joint::JointPlan& plan);

// What parse_schedule() reads.
std::string schedule_text(const StepSchedule& schedule);

// The joint plan of a step, within that time of searching, and what the step takes without one. Fails (invalid) where
// the step names what does not fit together.
Result<StepSchedule> plan_step(const Step& step, const Hierarchy& hierarchy, const Machine& machine,
                               const OptionLimits& limits, double seconds);

}  // namespace plait::plan::step
