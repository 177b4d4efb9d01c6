// Which pieces of a step's schedule run in the order of the program's calls among each other, whatever their channels.
#pragma once

#include <vector>

#include "plan/model/layer.h"
#include "plan/step/schedule_file.h"

namespace plait::plan::step {

// By operation and piece, from 0 on and few: on no channel does a piece stand before another one of its class that is
// of an earlier call, in any iteration. So pieces of a class may share connections in which messages meet in order,
// also where a rank runs them as the program makes the calls instead of as the schedule says.
std::vector<std::vector<int>> piece_classes(const StepSchedule& schedule);

}  // namespace plait::plan::step
