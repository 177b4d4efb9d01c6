// What a planned resharding says of itself.
#pragma once

#include <string>

#include "plan/reshard/plan.h"

namespace plait::plan::reshard {

// {"strategy":"broadcast","scheduler":"search","unit_tasks":64,"seconds":..,"lower_bound_seconds":..,"gap":..}; `gap`
// is what the seconds exceed the bound by, as a share of it. Seconds are the model's.
std::string summary_json(const Plan& plan);

// Seconds above the bound, over the bound; 0 where nothing crosses the network.
double gap(const Plan& plan);

}  // namespace plait::plan::reshard
