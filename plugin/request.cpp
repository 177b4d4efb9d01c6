#include "plugin/request.h"

#include <algorithm>
#include <exception>
#include <string>

#include "core/log.h"
#include "plugin/bootstrap.h"
#include "plugin/errors.h"
#include "plugin/progress.h"
#include "plugin/reasons.h"
#include "plugin/report.h"
#include "plugin/shared_memory.h"
#include "plugin/staging.h"
#include "tl/shm/arena.h"

namespace plait {
namespace {

// ---- Running ----

int fail(Communicator& communicator, const Status& status) {
  communicator.error = error_code(status);
  communicator.road = Road::broken;
  if (communicator.machinery != nullptr) communicator.machinery->give_up(status);
  return raise_error_of_call(communicator.handle, communicator.error);
}

int run(Communicator& communicator, Request& request, const PreparedCall& prepared) {
  Machinery& machinery = *communicator.machinery;
  const Staging staging = lay_out(request, prepared.schedule, machinery.memory);
  if (const int error = stage_in(request, staging); error != MPI_SUCCESS)
    return raise_error_of_call(communicator.handle, error);
  StepTrace* steps = begin_trace(machinery);
  const Status status = machinery.engine.run(prepared.schedule, staging.buffers, request.reducer, steps);
  if (!status.ok()) [[unlikely]]
    return fail(communicator, status);
  if (const int error = stage_out(request, staging); error != MPI_SUCCESS)
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

Extent extent_for(const Communicator& communicator, const Call& call) {
  return is_short(call, communicator.ranks) && !communicator.posts ? Extent::short_calls : Extent::all_calls;
}

Outcome run_prepared(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  const CallShape shape{
      .call = request.call, .in_place = request.sharing != Sharing::none, .displacements = request.displacements};
  const PreparedCall* prepared = &communicator.machinery->schedules.find(shape);
  if (prepared->too_long || (communicator.posts && communicator.machinery->short_calls_only)) [[unlikely]] {
    set_up_now(communicator, Extent::all_calls);
    if (communicator.road == Road::host) return {.reason = communicator.host_reason};
    prepared = &communicator.machinery->schedules.find(shape);
  }
  if (!prepared->accelerated) return {.reason = prepared->reason};
  const bool measuring = begin_ns != 0 || communicator.machinery->trace != nullptr;
  if (measuring && begin_ns == 0) begin_ns = monotonic_ns();
  detail::last_call = {.plan = prepared->plan, .channels = prepared->channels};
  const int code = run(communicator, request, *prepared);
  if (measuring) record(communicator, request, *prepared, prepared->row, begin_ns);
  return {.code = code};
}

}  // namespace

void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, ReportRow* row,
            std::uint64_t begin_ns) {
  const std::uint64_t end_ns = monotonic_ns();
  if (row != nullptr) row->add(prepared.payload, end_ns - begin_ns);
  if (communicator.rank == 0 && prepared.payload >= large_call_bytes && communicator.machinery->connections.shm)
    note_buffers(prepared.payload, in_arena(request));
  if (communicator.machinery->trace != nullptr)
    communicator.machinery->trace->add({.begin_ns = begin_ns,
                                        .end_ns = end_ns,
                                        .bytes = prepared.payload,
                                        .plan = prepared.plan,
                                        .collective = request.call.collective});
}

void set_up_now(Communicator& communicator, Extent extent) {
  Result<std::unique_ptr<Machinery>> made = set_up(communicator, extent, std::move(communicator.machinery));
  if (made.ok()) {
    communicator.machinery = std::move(*made);
    communicator.road = Road::accelerated;
    return;
  }
  communicator.host_reason = intern(made.status().message());
  communicator.road = Road::host;
  if (process().first_rank) warn("the host MPI keeps a communicator's collectives: " + made.status().message());
}

Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns) {
  Status failure;
  try {
    if (communicator.operations.pending.load(std::memory_order_acquire) != 0) [[unlikely]]
      drain(communicator);
    if (communicator.road == Road::waiting) [[unlikely]] {
      if (++communicator.eligible_calls < process().config.setup_calls) return {.reason = reasons::not_set_up};
      set_up_now(communicator, extent_for(communicator, request.call));
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
              .form = call.form,
              .grid = call.communicator != nullptr ? call.communicator->grid : ""})
      .add(bytes, end_ns - begin_ns);
}

}  // namespace plait
