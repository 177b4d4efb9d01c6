// plait simulate fused: a pass of training a recommendation model on many nodes, its embeddings and their exchanges
// kernel by kernel and fused. docs/fused.md.
#pragma once

#include <string>

#include "core/status.h"
#include "tuner/commands/command_line.h"

namespace plait::tuner {

// As the user wrote them. The model's figures: Punniyamurthy et al., SC '24, table II. The device's are assumed.
struct FusedSimulationOptions {
  std::string machine = "default", torus, batches = "1024,2048,4096", tables = "64,128,256";
  std::string memory = "1tb";
  int nodes = 128, dim = 92, pooling = 70, layers = 43, bottom_layers = 10, width = 682;
  double flops = 2e13, launch = 5e-6;
  bool json = false;
};
void add_fused_simulation(CommandLine line, FusedSimulationOptions& options);

// The exit code.
Result<int> simulate_fused(const FusedSimulationOptions& options);

}  // namespace plait::tuner
