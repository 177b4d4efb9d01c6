// What `plait reshard` prints: a table and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/reshard/plan.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct ReshardRow {
  reshard::Plan plan;
  std::optional<double> measured_seconds;  // median of the slowest rank's times
};

struct ReshardReport {
  std::string title;  // "2x4 S0RR to 2x4 RS1R, 1024 x 1024 x 512 of 4 B"
  std::string machine;
  double planning_seconds = 0;   // of the last row's plan
  std::vector<ReshardRow> rows;  // by strategy, then scheduler; not empty
  std::vector<int> host_of;      // by rank
  int shown = 0;                 // the row whose tasks are listed and drawn

  const reshard::Plan& shown_plan() const { return rows[static_cast<std::size_t>(shown)].plan; }
};

std::string reshard_table(const ReshardReport& report);
std::string reshard_json(const ReshardReport& report);

}  // namespace plait::tuner
