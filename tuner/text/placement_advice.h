// Whether a job would run faster if its ranks were placed on its nodes in another way (P², section 2.5: the
// parallelism matrices of the job's process grid).
#pragma once

#include <string>
#include <vector>

#include "plan/model/collective.h"
#include "plan/model/machine.h"
#include "plan/synthesis/process_grid.h"
#include "tuner/text/launcher_options.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Calls of one collective on the communicators of one set of axes.
struct GridTraffic {
  std::vector<GridAxis> axes;
  Collective collective = Collective::allreduce;
  double calls = 0;  // on each of the communicators
  double bytes = 0;  // of a call, as payload_bytes() defines it; the mean
};

struct JobPlacement {
  std::vector<int> nodes;  // of each rank of MPI_COMM_WORLD, any numbers
  Machine machine;
  std::vector<GridTraffic> traffic;
  Launcher launcher = Launcher::openmpi;
};

struct PlacementAdvice {
  bool better = false;  // another placement is at least 1.2 times as fast
  double times = 1;     // as fast as now the best one is, as predicted; 1 where nothing could be compared
  // "placement: axis 0 (4 ranks, stride 2) crosses nodes: mapping by node (mpirun --map-by node) would be 3.1x faster":
  // the times of all calls together, as predicted for the cheapest programs; above 10, "more than 10x faster". Else
  // "placement: nothing to gain: all ranks are on one node", with the reason: where ranks are, a traffic that fits no
  // one grid, ranks that are no placement of that grid.
  std::string sentence;
};

// Slow: seconds for large grids.
PlacementAdvice placement_advice(const JobPlacement& job);

}  // namespace plait::tuner
