// The system that candidates are weighed for.
#pragma once

#include <cstddef>

#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "topo/hierarchy.h"

namespace plait::plan {

struct CandidateContext {
  const Hierarchy& hierarchy;
  const Machine& machine;
  double siblings = 1;          // ranks of the job on a node, over those of this communicator
  std::size_t chunk_bytes = 0;  // 0: by the cost model
  int rails = 0;                // of the network that a plan may bind chunks to
  bool shared_memory = true;    // a shm channel connects the ranks of each node
  bool staged = false;          // data may come from devices and go there, piece by piece, while a plan runs
  bool must_be_proven = false;  // only plans whose proof does not take too long
};

}  // namespace plait::plan
