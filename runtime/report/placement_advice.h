// Whether a job would run faster if its ranks were placed on its nodes in another way (P², section 2.5: the
// parallelism matrices of the job's process grid).
#pragma once

#include <string>
#include <vector>

#include "plan/model/collective.h"
#include "plan/model/machine.h"
#include "runtime/job/launcher.h"
#include "runtime/layer.h"
#include "runtime/report/process_grid.h"

namespace plait::runtime {

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

// "placement: axis 0 (4 ranks, stride 2) crosses nodes: mapping by node (mpirun --map-by node) would be 3.1x faster":
// the times of all calls together, as predicted for the cheapest programs; above 10, "more than 10x faster". Empty when
// the best placement is not at least 1.2 times as fast, when the traffic fits no one grid, or when the nodes' ranks are
// no placement of that grid. Slow: for the end of a job.
std::string placement_advice(const JobPlacement& job);

}  // namespace plait::runtime
