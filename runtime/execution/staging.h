// Where the engine finds a request's data, and how it gets there and back.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "runtime/device/call_memory.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "tl/channel.h"

namespace plait::runtime {

struct Staging {
  Buffers buffers = {};
  std::byte* packed_input = nullptr;   // to be filled from the input before; nullptr: used in place
  std::byte* packed_output = nullptr;  // to be emptied into the output afterwards
  DeviceFlow* flow = nullptr;          // of data in memory of a device; nullptr: there are none
};

namespace detail {

Staging lay_out_apart(const Request& request, const BoundSchedule& schedule, CallMemory& memory);
int stage_in_apart(const Request& request, const BoundSchedule& schedule, const Staging& staging);
int stage_out_apart(const Request& request, const Staging& staging);

// Whether all that a call needs is its data, where they lie.
inline bool is_plain(const Request& request) {
  return request.user == nullptr && request.prefix == Prefix::none && request.sharing == Sharing::none &&
         !request.copy_input && !request.input.staged() && !request.output.staged();
}

}  // namespace detail

// Where some of the call's data lie in memory of a device: copies come after what the program has asked the device for
// so far. In the thread that calls; lay_out() does it where nobody has. May throw std::bad_alloc.
void follow_program(const Request& request, CallMemory& memory);
namespace detail {
bool pieces_on_device(const Request& request);
}
inline bool on_device(const Request& request) {
  if (request.input.device != nullptr || request.output.device != nullptr) return true;
  return lies_in_pieces(request.call.collective) && detail::pieces_on_device(request);
}

// Data that the schedule cannot use where it lies, and the plan's scratch, stand in `memory` until the call is over.
// Plain calls are laid out here, as what is called shows in the time of a small one.
inline Staging lay_out(const Request& request, const BoundSchedule& schedule, CallMemory& memory) {
  if (detail::is_plain(request) && schedule.scratch_bytes == 0) [[likely]]
    return {.buffers = {.base = {request.input.address, request.output.address, nullptr}}};
  return detail::lay_out_apart(request, schedule, memory);
}

// Before and after the schedule runs. Both return a code of the caller's, and may throw std::bad_alloc. Data in memory
// of a device come while it runs, and go.
inline int stage_in(const Request& request, const BoundSchedule& schedule, const Staging& staging) {
  if (staging.flow != nullptr) [[unlikely]]
    return detail::stage_in_apart(request, schedule, staging);
  return staging.packed_input != nullptr ? pack(request.input, staging.packed_input) : 0;
}
inline int stage_out(const Request& request, const Staging& staging) {
  const bool plain = request.user == nullptr && request.prefix == Prefix::none && staging.flow == nullptr;
  return plain && staging.packed_output == nullptr ? 0 : detail::stage_out_apart(request, staging);
}

// Allreduces that run as one, in place: the data of all of them, one after the other, where the staging packs both.
using GroupMembers = std::vector<const Request*>;
int stage_in(const GroupMembers& members, const BoundSchedule& schedule, const Staging& staging);
int stage_out(const GroupMembers& members, const Staging& staging);
// For those of which some are in memory of a device; may throw std::bad_alloc.
void lay_out(const GroupMembers& members, const BoundSchedule& schedule, CallMemory& memory, Staging& staging);

}  // namespace plait::runtime
