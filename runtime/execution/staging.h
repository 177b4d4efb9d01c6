// Where the engine finds a request's data, and how it gets there and back.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "runtime/execution/request.h"
#include "runtime/job/work_memory.h"
#include "runtime/layer.h"
#include "tl/channel.h"

namespace plait::runtime {

struct Staging {
  Buffers buffers;
  std::byte* packed_input = nullptr;   // to be filled from the input before; nullptr: used in place
  std::byte* packed_output = nullptr;  // to be emptied into the output afterwards
};

// Data that the schedule cannot use where it lies, and the plan's scratch, stand in `memory` until the call is over.
Staging lay_out(const Request& request, const BoundSchedule& schedule, WorkMemory& memory);

// Before and after the schedule runs. Both return a code of the caller's.
int stage_in(const Request& request, const Staging& staging);
int stage_out(const Request& request, const Staging& staging);

// Allreduces that run as one, in place: the data of all of them, one after the other, where the staging packs both.
using GroupMembers = std::vector<const Request*>;
int stage_in(const GroupMembers& members, const Staging& staging);
int stage_out(const GroupMembers& members, const Staging& staging);

}  // namespace plait::runtime
