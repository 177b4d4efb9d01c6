#include "plan/reshard/report.h"

#include <nlohmann/json.hpp>

namespace plait::plan::reshard {

double gap(const Plan& plan) { return plan.lower_bound > 0 ? predicted_seconds(plan) / plan.lower_bound - 1 : 0; }

std::string summary_json(const Plan& plan) {
  return nlohmann::ordered_json{{"strategy", name(plan.options.strategy)},
                                {"scheduler", name(plan.options.scheduler)},
                                {"unit_tasks", plan.unit.tasks.size()},
                                {"blocks", plan.blocks},
                                {"seconds", predicted_seconds(plan)},
                                {"lower_bound_seconds", plan.lower_bound},
                                {"gap", gap(plan)}}
      .dump();
}

}  // namespace plait::plan::reshard
