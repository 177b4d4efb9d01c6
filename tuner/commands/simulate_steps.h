// plait simulate steps: what steps of computation and collectives take on more nodes than there are, by joint plans and
// by the ways that Syndicate is compared with (NSDI '23, section 6.4). docs/schedule.md.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "tuner/commands/command_line.h"

namespace plait::tuner {

// As the user wrote them.
struct StepSimulationOptions {
  std::vector<std::string> traces;
  std::string machine = "default", nodes = "16..1024", svg;
  int ranks = 8, per_node = 8, depth = 2;
  double seconds = 2;
  std::uint64_t schedules = 0, seed = 1;
  bool json = false;
};
void add_step_simulation(CommandLine line, StepSimulationOptions& options);

// The exit code.
Result<int> simulate_steps(const StepSimulationOptions& options);

}  // namespace plait::tuner
