#include "plugin/staging.h"

#include "plugin/layout.h"

namespace plait {
namespace {

std::size_t padded(std::size_t bytes) {
  return (bytes + WorkMemory::alignment - 1) / WorkMemory::alignment * WorkMemory::alignment;
}

bool is_staged(const Region& region) { return region.type != nullptr && !region.direct; }

}  // namespace

Staging lay_out(const Request& request, const BoundSchedule& schedule, WorkMemory& memory) {
  const bool input_staged = is_staged(request.input) || request.copy_input;
  const bool output_staged = is_staged(request.output);
  const bool own_input = input_staged && request.sharing != Sharing::input_in_output;
  const bool own_output = output_staged && request.sharing != Sharing::output_in_input;
  const std::size_t input_bytes = own_input ? padded(request.input.bytes) : 0;
  const std::size_t output_bytes = own_output ? padded(request.output.bytes) : 0;
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

int stage_in(const Request& request, const Staging& staging) {
  return staging.packed_input != nullptr ? pack(request.input, staging.packed_input) : MPI_SUCCESS;
}

int stage_out(const Request& request, const Staging& staging) {
  if (request.user.error() != MPI_SUCCESS) return request.user.error();
  return staging.packed_output != nullptr ? unpack(request.output, staging.packed_output) : MPI_SUCCESS;
}

}  // namespace plait
