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

namespace detail {

Staging lay_out_apart(const Request& request, const BoundSchedule& schedule, WorkMemory& memory);
int stage_out_apart(const Request& request, const Staging& staging);

// Whether all that a call needs is its data, where they lie.
inline bool is_plain(const Request& request) {
  return request.user == nullptr && request.prefix == Prefix::none && request.sharing == Sharing::none &&
         !request.copy_input && !request.input.staged() && !request.output.staged();
}

}  // namespace detail

// Data that the schedule cannot use where it lies, and the plan's scratch, stand in `memory` until the call is over.
// Plain calls are laid out here, as what is called shows in the time of a small one.
inline Staging lay_out(const Request& request, const BoundSchedule& schedule, WorkMemory& memory) {
  if (detail::is_plain(request) && schedule.scratch_bytes == 0) [[likely]]
    return {.buffers = {.base = {request.input.address, request.output.address, nullptr}}};
  return detail::lay_out_apart(request, schedule, memory);
}

// Before and after the schedule runs. Both return a code of the caller's.
inline int stage_in(const Request& request, const Staging& staging) {
  return staging.packed_input != nullptr ? pack(request.input, staging.packed_input) : 0;
}
inline int stage_out(const Request& request, const Staging& staging) {
  const bool plain = request.user == nullptr && request.prefix == Prefix::none;
  return plain && staging.packed_output == nullptr ? 0 : detail::stage_out_apart(request, staging);
}

// Allreduces that run as one, in place: the data of all of them, one after the other, where the staging packs both.
using GroupMembers = std::vector<const Request*>;
int stage_in(const GroupMembers& members, const Staging& staging);
int stage_out(const GroupMembers& members, const Staging& staging);

}  // namespace plait::runtime
