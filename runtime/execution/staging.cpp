#include "runtime/execution/staging.h"

#include <algorithm>

#include "runtime/execution/caller.h"
#include "runtime/execution/device_data.h"

namespace plait::runtime {
namespace {

bool is_there(const Region& region) { return region.device != nullptr && region.bytes != 0; }

bool has_device_side(const Request& request) { return is_there(request.input) || is_there(request.output); }

const Region& device_side(const Request& request) { return is_there(request.input) ? request.input : request.output; }

const Piece* piece_on_device(const Request& request) {
  for (const std::vector<Piece>* pieces : {&request.lists->sends, &request.lists->receives})
    for (const Piece& piece : *pieces)
      if (piece.device != nullptr) return &piece;
  return nullptr;
}

std::byte* reserve(const Request& request, CallMemory& memory, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (!has_device_side(request)) return memory.reserve(bytes);
  const Region& side = device_side(request);
  return memory.reserve_pinned(bytes, *side.device, memory_of(side));
}

DeviceFlow* flow_of(const Request& request, CallMemory& memory) {
  if (!has_device_side(request)) return nullptr;
  if (!memory.has_flow() || !memory.flow().follows_program()) follow_program(request, memory);
  return &memory.flow();
}

// The vectors of all ranks, one after the other, and the plan's scratch: the result is made from them afterwards.
Staging lay_out_prefix(const Request& request, const BoundSchedule& schedule, CallMemory& memory) {
  const bool input_staged = request.input.staged();
  const std::size_t input_bytes = input_staged ? WorkMemory::padded(request.input.bytes) : 0;
  const std::size_t all_bytes = WorkMemory::padded(schedule.output_bytes);
  std::byte* work = reserve(request, memory, input_bytes + all_bytes + schedule.scratch_bytes);
  Staging staging{.buffers = {}, .flow = flow_of(request, memory)};
  if (input_staged) staging.packed_input = work;
  staging.packed_output = work + input_bytes;
  staging.buffers.base = {input_staged ? work : request.input.address, staging.packed_output,
                          work + input_bytes + all_bytes};
  staging.buffers.flow = staging.flow;
  return staging;
}

// The vectors of the ranks before this one, and its own one for an inclusive prefix, are combined in their order.
int combine_prefix(const Request& request, std::byte* vectors) {
  const std::size_t bytes = request.input.bytes;
  const std::size_t before = request.own_offset / bytes;
  const std::size_t operands = request.prefix == Prefix::inclusive ? before + 1 : before;
  if (operands == 0) return 0;
  std::vector<const std::byte*>& sources = request.lists->prefix;
  sources.clear();
  for (std::size_t rank = 0; rank < operands; ++rank) sources.push_back(vectors + rank * bytes);
  const bool staged = request.output.staged();
  std::byte* result = staged ? vectors + (operands - 1) * bytes : request.output.address;
  reduce_many(*request.reducer, {.results = &result,
                                 .result_count = 1,
                                 .sources = sources.data(),
                                 .source_count = operands,
                                 .elements = bytes / request.call.element_bytes,
                                 .streaming = false});
  if (request.user_error() != 0 || !staged) return request.user_error();
  return unpack(request.output, result);
}

// Whether the output goes to the device while the schedule runs.
bool takes_away(const Request& request, const Staging& staging) {
  return staging.packed_output != nullptr && is_there(request.output) && request.prefix == Prefix::none;
}

const Region& input_of(const Request& request) {
  return request.sharing == Sharing::input_in_output ? request.output : request.input;
}

}  // namespace

Staging detail::lay_out_apart(const Request& request, const BoundSchedule& schedule, CallMemory& memory) {
  if (request.user != nullptr) request.user->make_room();
  if (request.prefix != Prefix::none) return lay_out_prefix(request, schedule, memory);
  const bool input_staged = request.input.staged() || request.copy_input;
  const bool output_staged = request.output.staged();
  const bool own_input = input_staged && request.sharing != Sharing::input_in_output;
  const bool own_output = output_staged && request.sharing != Sharing::output_in_input;
  const std::size_t input_bytes = own_input ? WorkMemory::padded(request.input.bytes) : 0;
  const std::size_t output_bytes = own_output ? WorkMemory::padded(request.output.bytes) : 0;
  const std::size_t all = input_bytes + output_bytes + schedule.scratch_bytes;
  std::byte* work = reserve(request, memory, all);

  std::byte* input = own_input ? work : request.input.address;
  std::byte* output = own_output ? work + input_bytes : request.output.address;
  Staging staging{.buffers = {}, .flow = flow_of(request, memory)};
  if (request.sharing == Sharing::input_in_output && output_staged) input = output + request.own_offset;
  if (request.sharing == Sharing::output_in_input) output = input + request.own_offset;
  if (input_staged) staging.packed_input = input;
  if (own_output) staging.packed_output = output;
  staging.buffers = {.base = {input, output, work + input_bytes + output_bytes}, .flow = staging.flow};
  return staging;
}

bool detail::pieces_on_device(const Request& request) { return piece_on_device(request) != nullptr; }

void follow_program(const Request& request, CallMemory& memory) {
  if (has_device_side(request)) {
    const Region& side = device_side(request);
    memory.flow().follow_program(*side.device, memory_of(side));
  } else if (const Piece* piece = piece_on_device(request); piece != nullptr) {
    memory.flow().follow_program(*piece->device, memory_of(*piece));
  }
}

// What a prefix is combined to goes to the device at the end.
int detail::stage_in_apart(const Request& request, const BoundSchedule& schedule, const Staging& staging) {
  if (const Status started = staging.flow->start(); !started.ok()) return runtime::caller().code_of(started);
  int error = 0;
  if (staging.packed_input != nullptr) {
    if (is_there(request.input))
      view(request.input, staging.flow->bring(staging.packed_input));
    else
      error = pack(request.input, staging.packed_input);
  }
  if (takes_away(request, staging)) view(request.output, staging.flow->take(staging.packed_output));
  staging.flow->begin(schedule, staging.buffers, request.copy_input);
  return error;
}

int detail::stage_out_apart(const Request& request, const Staging& staging) {
  if (staging.flow != nullptr) staging.flow->end();
  if (const int error = request.user_error(); error != 0) return error;
  if (request.prefix != Prefix::none) return combine_prefix(request, staging.packed_output);
  if (staging.packed_output == nullptr || takes_away(request, staging)) return 0;
  return unpack(request.output, staging.packed_output);
}

int stage_in(const GroupMembers& members, const BoundSchedule& schedule, const Staging& staging) {
  if (staging.flow != nullptr)
    if (const Status started = staging.flow->start(); !started.ok()) return runtime::caller().code_of(started);
  std::byte* packed = staging.packed_input;
  for (const Request* member : members) {
    const Region& input = input_of(*member);
    if (input.device != nullptr)
      view(input, staging.flow->bring(packed));
    else if (const int error = pack(input, packed); error != 0)
      return error;
    if (member->output.device != nullptr) view(member->output, staging.flow->take(packed));
    packed += input.bytes;
  }
  if (staging.flow != nullptr) staging.flow->begin(schedule, staging.buffers, false);
  return 0;
}

int stage_out(const GroupMembers& members, const Staging& staging) {
  if (staging.flow != nullptr) staging.flow->end();
  const std::byte* packed = staging.packed_output;
  for (const Request* member : members) {
    if (member->output.device == nullptr)
      if (const int error = unpack(member->output, packed); error != 0) return error;
    packed += member->output.bytes;
  }
  return 0;
}

void lay_out(const GroupMembers& members, const BoundSchedule& schedule, CallMemory& memory, Staging& staging) {
  std::size_t bytes = 0;
  for (const Request* member : members) bytes += member->output.bytes;
  bytes = CallMemory::padded(bytes);
  const Request& first = **std::ranges::find_if(members, [](const Request* member) { return on_device(*member); });
  std::byte* work = reserve(first, memory, bytes + schedule.scratch_bytes);
  follow_program(first, memory);
  staging = {.buffers = {.base = {work, work, work + bytes}, .flow = &memory.flow()},
             .packed_input = work,
             .packed_output = work,
             .flow = &memory.flow()};
}

}  // namespace plait::runtime
