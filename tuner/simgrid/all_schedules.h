// The messages of all ranks' schedules of a plan, for one process that plays them all.
#pragma once

#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tuner/simgrid/row_plan.h"

namespace plait::tuner {

// A schedule without what it does with its memory, which is most of it. Its steps stand in an order that is the same on
// ranks that do the same, of an exchange with a peer the send first.
plan::BoundSchedule messages_of(const plan::BoundSchedule& schedule);

// Whether `other` is what `first` is, for the rank so many places behind it on the same node: as many bytes at the same
// places of the schedule, from and to ranks of other nodes that are as many places behind.
bool moves_along(const plan::BoundSchedule& first, const plan::BoundSchedule& other, int places);
plan::BoundSchedule moved_along(const plan::BoundSchedule& first, int places);

// Whether `other` is what `first` is, of a rank on node 0, for the rank at the same place of the node whose first rank
// is `node_first`: the same with ranks whose numbers differ from its own by the same bits.
bool mirrors(const plan::BoundSchedule& first, const plan::BoundSchedule& other, int node_first);
plan::BoundSchedule mirrored(const plan::BoundSchedule& first, int node_first);

// By rank, `ranks_per_node` in turn on each node. A rank of an all-gather of 65,536 has to do with all blocks, which
// takes it 20 ms, so that not all are lowered where nodes are a power of two: groups follow from coordinates, and what
// holds on the nodes that are looked at (the first, the last, and some between: of each distance of a power of two)
// holds on all. By place within the node: ranks mirror node 0's (recursive doubling and halving), or else move along
// with their node's first one, or else are lowered each.
Result<std::vector<plan::BoundSchedule>> all_schedules(const SharedPlan& shared, const Call& call, const System& system,
                                                       int ranks_per_node);

}  // namespace plait::tuner
