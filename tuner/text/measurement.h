// What `plait bench` measures of one collective call.
#pragma once

#include <string>
#include <vector>

namespace plait::tuner {

// Where the buffers of a call come from: an ordinary allocation, or MPI_Alloc_mem, which may give memory that the ranks
// of a node can map.
enum class BufferKind { ordinary, shared };

struct Measurement {
  double host_seconds = 0, plait_seconds = 0;  // a call, median of the batches; equal on all ranks
  int batches = 0;                             // of each
  bool on_trial = false;                       // Plait's times are of calls that were still tried in several ways
  // Known on rank 0: the plan that ran there, "host" where Plait handed the call on, and the channels of all ranks.
  std::string plan;
  std::vector<std::string> channels;
};

}  // namespace plait::tuner
