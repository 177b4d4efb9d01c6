// What gathering and scattering cost, whichever way the pieces take between the root and the members.
#pragma once

#include "plan/algorithm/group_cost.h"

namespace plait::plan {

// The root sends or takes each member's piece, by itself or `forwarded` along a binomial tree.
void charge_rooted_pieces(AlgorithmCost& cost, bool forwarded);

}  // namespace plait::plan
