// What `plait tune --measure` prints (docs/tuning.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/choose/table.h"
#include "tuner/text/layer.h"
#include "tuner/text/measured_table.h"

namespace plait::tuner {

struct MeasuredReport {
  std::string machine;  // whose figures the plans were chosen by
  int ranks = 0;
  TunedShape shape;  // the ranges that were found
  TuneMeasurement measured;
  double elapsed_seconds = 0;
};

std::string measured_text(const MeasuredReport& report);
nlohmann::ordered_json measured_json(const MeasuredReport& report);

}  // namespace plait::tuner
