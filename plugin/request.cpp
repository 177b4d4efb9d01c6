#include "plugin/request.h"

#include <algorithm>
#include <exception>
#include <string>

#include "core/log.h"
#include "plugin/bootstrap.h"
#include "plugin/errors.h"
#include "plugin/report.h"
#include "plugin/shared_memory.h"
#include "tl/shm/arena.h"

namespace plait {
namespace {

// ---- Memory ----

std::size_t padded(std::size_t bytes) {
  return (bytes + WorkMemory::alignment - 1) / WorkMemory::alignment * WorkMemory::alignment;
}

// Where the engine finds a request's data.
struct Bases {
  Buffers buffers;
  std::byte* packed_input = nullptr;   // to be filled from the input before; nullptr: used in place
  std::byte* packed_output = nullptr;  // to be emptied into the output afterwards
};

bool staged(const Region& region) { return region.type != nullptr && !region.direct; }

Bases lay_out(const Request& request, const BoundSchedule& schedule, WorkMemory& memory) {
  const bool input_staged = staged(request.input) || request.copy_input;
  const bool output_staged = staged(request.output);
  const bool own_input = input_staged && request.sharing != Sharing::input_in_output;
  const bool own_output = output_staged && request.sharing != Sharing::output_in_input;
  const std::size_t input_bytes = own_input ? padded(request.input.bytes) : 0;
  const std::size_t output_bytes = own_output ? padded(request.output.bytes) : 0;
  const std::size_t all = input_bytes + output_bytes + schedule.scratch_bytes;
  std::byte* work = all > 0 ? memory.reserve(all) : nullptr;

  std::byte* input = own_input ? work : request.input.address;
  std::byte* output = own_output ? work + input_bytes : request.output.address;
  Bases bases;
  if (request.sharing == Sharing::input_in_output && output_staged) input = output + request.own_offset;
  if (request.sharing == Sharing::output_in_input) output = input + request.own_offset;
  if (input_staged) bases.packed_input = input;
  if (own_output) bases.packed_output = output;
  bases.buffers.base = {input, output, work + input_bytes + output_bytes};
  return bases;
}

// ---- Running ----

int fail(Communicator& communicator, const Status& status) {
  communicator.road = Road::broken;
  return communicator.error = raise_error_of_call(communicator.handle, status);
}

int run(Communicator& communicator, Request& request, const PreparedCall& prepared) {
  Machinery& machinery = *communicator.machinery;
  const Bases bases = lay_out(request, prepared.schedule, machinery.memory);
  if (bases.packed_input != nullptr)
    if (const int error = pack(request.input, bases.packed_input); error != MPI_SUCCESS)
      return raise_error_of_call(communicator.handle, error);
  CommunicatorTrace* trace = machinery.trace.get();
  if (trace != nullptr) trace->steps.begin_call();
  const Status status = machinery.engine.run(prepared.schedule, bases.buffers, request.reducer,
                                             trace != nullptr ? &trace->steps : nullptr);
  if (!status.ok()) [[unlikely]]
    return fail(communicator, status);
  if (request.user.error() != MPI_SUCCESS) [[unlikely]]
    return raise_error_of_call(communicator.handle, request.user.error());
  if (bases.packed_output != nullptr)
    if (const int error = unpack(request.output, bases.packed_output); error != MPI_SUCCESS)
      return raise_error_of_call(communicator.handle, error);
  return MPI_SUCCESS;
}

// Whether peers can reach all of a call's data on this rank.
bool in_arena(const Request& request) {
  const auto reachable = [](const Region& region) {
    return region.type == nullptr || region.bytes == 0 || (region.direct && Arena::contains(region.address));
  };
  return reachable(request.input) && reachable(request.output);
}

void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, std::uint64_t begin_ns) {
  const std::uint64_t end_ns = monotonic_ns();
  if (prepared.row != nullptr) prepared.row->add(prepared.payload, end_ns - begin_ns);
  if (communicator.rank == 0 && prepared.payload >= large_call_bytes && communicator.machinery->connections.shm)
    note_buffers(prepared.payload, in_arena(request));
  if (communicator.machinery->trace != nullptr)
    communicator.machinery->trace->add({.begin_ns = begin_ns,
                                        .end_ns = end_ns,
                                        .bytes = prepared.payload,
                                        .plan = prepared.plan,
                                        .collective = request.call.collective});
}

Outcome run_prepared(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  Machinery& machinery = *communicator.machinery;
  const PreparedCall& prepared = machinery.schedules.find(
      {.call = request.call, .in_place = request.sharing != Sharing::none, .displacements = request.displacements});
  if (!prepared.accelerated) return {.reason = prepared.reason};
  const bool measuring = begin_ns != 0 || machinery.trace != nullptr;
  if (measuring && begin_ns == 0) begin_ns = monotonic_ns();
  detail::last_call = {.plan = prepared.plan, .channels = prepared.channels};
  const int code = run(communicator, request, prepared);
  if (measuring) record(communicator, request, prepared, begin_ns);
  return {.code = code};
}

}  // namespace

void set_up_now(Communicator& communicator) {
  Result<std::unique_ptr<Machinery>> made = set_up(communicator);
  if (made.ok()) {
    communicator.machinery = std::move(*made);
    communicator.road = Road::accelerated;
    return;
  }
  communicator.road = Road::host;
  communicator.host_reason = intern(made.status().message());
  if (process().first_rank) warn("the host MPI keeps a communicator's collectives: " + made.status().message());
}

Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  Status failure;
  try {
    if (communicator.road == Road::waiting) [[unlikely]] {
      if (++communicator.eligible_calls < process().config.setup_calls) return {.reason = "not set up yet"};
      set_up_now(communicator);
    }
    if (communicator.road == Road::host) [[unlikely]]
      return {.reason = communicator.host_reason};
    if (communicator.road == Road::broken) [[unlikely]]
      return {.code = raise_error_of_call(communicator.handle, communicator.error)};
    return run_prepared(communicator, request, begin_ns);
  } catch (const std::exception& exception) {
    failure = Status(Code::unavailable, exception.what());
  }
  // The other ranks go on without this one, so that none can go back to the host now.
  return {.code = fail(communicator, failure)};
}

void count_host_call(const HostCall& call, std::uint64_t begin_ns) {
  const std::uint64_t end_ns = monotonic_ns();
  if (call.comm == MPI_COMM_NULL) return;
  int ranks = 1;
  if (call.communicator != nullptr)
    ranks = call.communicator->ranks;
  else if (phase() == Phase::over || PMPI_Comm_size(call.comm, &ranks) != MPI_SUCCESS)
    return;
  const bool lists = call.collective == Collective::allgatherv || call.collective == Collective::reduce_scatter;
  const bool sized = call.call != nullptr && (!lists || call.call->counts != nullptr);
  const std::size_t bytes = sized ? payload_bytes(*call.call, ranks) : 0;
  const char* reason = call.reason;
  if (reason == nullptr) reason = phase() == Phase::off ? process().off_reason : "turned off by plait_set_enabled";
  report_row({.collective = call.collective,
              .ranks = ranks,
              .size_class = size_class(bytes),
              .plan = "host",
              .channels = "",
              .reason = reason,
              .grid = call.communicator != nullptr ? call.communicator->grid : ""})
      .add(bytes, end_ns - begin_ns);
}

}  // namespace plait
