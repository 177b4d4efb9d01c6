#include "plan/reshard/report.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace plait::plan::reshard {

double gap(const Plan& plan) { return plan.lower_bound > 0 ? predicted_seconds(plan) / plan.lower_bound - 1 : 0; }

namespace {

// JSON has no infinities.
std::string number(double value) {
  std::array<char, 40> text{};
  if (!std::isfinite(value)) return "null";
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

}  // namespace

// By hand: ranks of a job make it, and the library for JSON ends a process that has no memory to give back what it
// took.
std::string summary_json(const Plan& plan) {
  return "{\"strategy\":\"" + std::string(name(plan.options.strategy)) + "\",\"scheduler\":\"" +
         std::string(name(plan.options.scheduler)) + "\",\"unit_tasks\":" + std::to_string(plan.unit.tasks.size()) +
         ",\"blocks\":" + std::to_string(plan.blocks) + ",\"seconds\":" + number(predicted_seconds(plan)) +
         ",\"lower_bound_seconds\":" + number(plan.lower_bound) + ",\"gap\":" + number(gap(plan)) + "}";
}

}  // namespace plait::plan::reshard
