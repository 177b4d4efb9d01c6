#include "runtime/execution/staging.h"

namespace plait::runtime {
namespace {

// The vectors of all ranks, one after the other, and the plan's scratch: the result is made from them afterwards.
Staging lay_out_prefix(const Request& request, const BoundSchedule& schedule, WorkMemory& memory) {
  const bool input_staged = request.input.staged();
  const std::size_t input_bytes = input_staged ? WorkMemory::padded(request.input.bytes) : 0;
  const std::size_t all_bytes = WorkMemory::padded(schedule.output_bytes);
  std::byte* work = memory.reserve(input_bytes + all_bytes + schedule.scratch_bytes);
  Staging staging;
  if (input_staged) staging.packed_input = work;
  staging.packed_output = work + input_bytes;
  staging.buffers.base = {input_staged ? work : request.input.address, staging.packed_output,
                          work + input_bytes + all_bytes};
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

const Region& input_of(const Request& request) {
  return request.sharing == Sharing::input_in_output ? request.output : request.input;
}

}  // namespace

Staging detail::lay_out_apart(const Request& request, const BoundSchedule& schedule, WorkMemory& memory) {
  if (request.user != nullptr) request.user->make_room();
  if (request.prefix != Prefix::none) return lay_out_prefix(request, schedule, memory);
  const bool input_staged = request.input.staged() || request.copy_input;
  const bool output_staged = request.output.staged();
  const bool own_input = input_staged && request.sharing != Sharing::input_in_output;
  const bool own_output = output_staged && request.sharing != Sharing::output_in_input;
  const std::size_t input_bytes = own_input ? WorkMemory::padded(request.input.bytes) : 0;
  const std::size_t output_bytes = own_output ? WorkMemory::padded(request.output.bytes) : 0;
  const std::size_t all = input_bytes + output_bytes + schedule.scratch_bytes;
  std::byte* work = all > 0 ? memory.reserve(all) : nullptr;

  std::byte* input = own_input ? work : request.input.address;
  std::byte* output = own_output ? work + input_bytes : request.output.address;
  Staging staging;
  if (request.sharing == Sharing::input_in_output && output_staged) input = output + request.own_offset;
  if (request.sharing == Sharing::output_in_input) output = input + request.own_offset;
  if (input_staged) staging.packed_input = input;
  if (own_output) staging.packed_output = output;
  staging.buffers.base = {input, output, work + input_bytes + output_bytes};
  return staging;
}

int detail::stage_out_apart(const Request& request, const Staging& staging) {
  if (const int error = request.user_error(); error != 0) return error;
  if (request.prefix != Prefix::none) return combine_prefix(request, staging.packed_output);
  return staging.packed_output != nullptr ? unpack(request.output, staging.packed_output) : 0;
}

int stage_in(const GroupMembers& members, const Staging& staging) {
  std::byte* packed = staging.packed_input;
  for (const Request* member : members) {
    const Region& input = input_of(*member);
    if (const int error = pack(input, packed); error != 0) return error;
    packed += input.bytes;
  }
  return 0;
}

int stage_out(const GroupMembers& members, const Staging& staging) {
  const std::byte* packed = staging.packed_output;
  for (const Request* member : members) {
    if (const int error = unpack(member->output, packed); error != 0) return error;
    packed += member->output.bytes;
  }
  return 0;
}

}  // namespace plait::runtime
