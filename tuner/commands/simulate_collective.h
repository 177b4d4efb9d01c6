// plait simulate collective: collectives on a machine that is not there, by Plait's plans and beside them by other
// MPIs' algorithms, in SimGrid. docs/scale.md.
#pragma once

#include <string>

#include "core/status.h"
#include "tuner/commands/command_line.h"

namespace plait::tuner {

// As the user wrote them.
struct CollectiveSimulationOptions {
  std::string platform = "fat-tree";
  std::string collectives = "allreduce,bcast,reduce,allgather,reduce_scatter_block,alltoall", sizes = "8,64K,1M";
  std::string selectors = "ompi,mpich,mvapich2,impi", svg;
  int nodes = 64, ranks_per_node = 1;
  bool alone = false, json = false;  // alone: Plait's plans without `selectors` beside them
};
void add_collective_simulation(CommandLine line, CollectiveSimulationOptions& options);

// The exit code.
Result<int> simulate_collective(const CollectiveSimulationOptions& options);

}  // namespace plait::tuner
