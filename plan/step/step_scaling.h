// A step on more ranks than it was written for, and a machine with less of its network: what a comparison by the number
// of nodes asks for. Pure.
#pragma once

#include "plan/model/machine.h"
#include "plan/step/step_file.h"

namespace plait::plan::step {

// Weak scaling: each rank computes as much and gives as much to an all-to-all, of which a pair's message is a part;
// what an all-gather puts together and a reduce-scatter deals out is as long in all; vectors stay as they are.
// Preconditions: both numbers are positive.
Step on_ranks(Step step, int ranks, int to_ranks);

// The network's fastest rail alone, as where every collective goes over one network.
Machine over_fastest_rail(Machine machine);

}  // namespace plait::plan::step
