// What `plait overlap plan` and `measure` print.
#pragma once

#include <string>

#include "plan/overlap/contention.h"
#include "plan/overlap/layers.h"
#include "plan/overlap/overlap_planner.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct OverlapReport {
  const LayerTable& table;
  const Contention& contention;
  const OverlapModel& model;
  GroupSearchOptions search;
  OverlapComparison comparison;
};

// For people, and as JSON; both end with a line's end.
std::string overlap_report_text(const OverlapReport& report);
std::string overlap_report_json(const OverlapReport& report);

// Samples, curves and their errors.
std::string contention_text(const Contention& contention);

}  // namespace plait::tuner
