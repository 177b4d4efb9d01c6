// A resharding cut into unit tasks: one for each pair of a source slice and a destination slice that meet (section 2.2
// of the paper, with the slices intersected with what the destinations need).
#pragma once

#include <cstdint>
#include <vector>

#include "plan/reshard/task.h"

namespace plait::plan::reshard {

// A part of the tensor and all ranks that have it, or want it, in ascending order of their place in the mesh.
struct Slice {
  Box box;
  std::vector<int> ranks;
};

struct UnitTask {
  Box box;
  int source = 0;       // index into UnitTasks::sources: its ranks are the holders
  int destination = 0;  // index into UnitTasks::destinations: its ranks are the receivers
  std::uint64_t bytes = 0;
};

struct UnitTasks {
  std::vector<Slice> sources, destinations;  // unique, without empty ones, in the order of their first place
  std::vector<UnitTask> tasks;               // by source, then destination

  const std::vector<int>& holders(const UnitTask& task) const {
    return sources[static_cast<std::size_t>(task.source)].ranks;
  }
  const std::vector<int>& receivers(const UnitTask& task) const {
    return destinations[static_cast<std::size_t>(task.destination)].ranks;
  }
};

// Pure. Precondition: check() is ok. Every element of the tensor is in exactly one task for each destination slice that
// has it.
UnitTasks cut(const Task& task);

}  // namespace plait::plan::reshard
