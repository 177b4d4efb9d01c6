// The messages of all ranks' schedules of a plan, for one process that plays them all.
#pragma once

#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tuner/simgrid/row_plan.h"

namespace plait::tuner {

// A schedule without what it does with its memory, which is most of it.
plan::BoundSchedule messages_of(plan::BoundSchedule schedule);

// Whether `other` is what `first` is, for the rank so many places behind it on the same node: as many bytes at the same
// places of the schedule, from and to ranks of other nodes that are as many places behind.
bool moves_along(const plan::BoundSchedule& first, const plan::BoundSchedule& other, int places);
plan::BoundSchedule moved_along(const plan::BoundSchedule& first, int places);

// By rank, `ranks_per_node` in turn on each node. Where the ranks of the first and of the last node move along with
// those nodes' first ones, so do all others', and only first ranks' are lowered: groups follow from coordinates. A rank
// of an all-gather of 65,536 has to do with all blocks, which takes it 2 ms.
Result<std::vector<plan::BoundSchedule>> all_schedules(const SharedPlan& shared, const Call& call, const System& system,
                                                       int ranks_per_node);

}  // namespace plait::tuner
