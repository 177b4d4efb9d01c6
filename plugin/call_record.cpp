#include "plugin/call_record.h"

#include <exception>

#include "plugin/layer.h"
#include "runtime/job/job.h"
#include "runtime/record/node_counts.h"
#include "runtime/team/team.h"
#include "tl/shm/shared_heap.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// Whether peers can reach all of a call's data on this rank.
bool in_shared_heap(const Request& request) {
  const auto reachable = [](const Region& region) {
    return region.type == nullptr || region.bytes == 0 || (region.direct && SharedHeap::contains(region.address));
  };
  return reachable(request.input) && reachable(request.output);
}

}  // namespace

// What an exchange by pairs moves differs from rank to rank, so that the ranks' rows would not be the same.
ReportRow* row_of(const Communicator& communicator, const Request& request, const PreparedCall& prepared, Form form) {
  if (prepared.row == nullptr) return nullptr;
  return &report_row({.collective = request.call.collective,
                      .ranks = communicator.ranks,
                      .size_class = by_pairs(request.call.collective) ? -1 : size_class(prepared.payload),
                      .plan = prepared.plan,
                      .channels = prepared.channels,
                      .reason = prepared.reason,
                      .form = form,
                      .grid = communicator.grid});
}

void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, ReportRow* row,
            std::uint64_t begin_ns) {
  const std::uint64_t end_ns = monotonic_ns();
  const bool pairs = by_pairs(request.call.collective);
  const std::uint64_t payload = pairs ? request.call.count : prepared.payload;
  if (row != nullptr) row->add(payload, end_ns - begin_ns);
  if (row != nullptr && prepared.saved_nanoseconds != 0) note_saved(prepared.saved_nanoseconds);
  if (communicator.rank == 0 && !pairs && payload >= large_call_bytes && communicator.team->connections.shm)
    note_buffers(payload, in_shared_heap(request));
  if (communicator.team->trace != nullptr)
    communicator.team->trace->add({.begin_ns = begin_ns,
                                   .end_ns = end_ns,
                                   .bytes = payload,
                                   .plan = prepared.plan,
                                   .collective = request.call.collective});
}

namespace {

void add_host_call(const HostCall& call, std::uint64_t begin_ns) {
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
  if (reason == nullptr) reason = phase() == Phase::off ? job().off_reason : "turned off by plait_set_enabled";
  report_row({.collective = call.collective,
              .ranks = ranks,
              .size_class = by_pairs(call.collective) ? -1 : size_class(bytes),
              .plan = "host",
              .channels = "",
              .reason = reason,
              .form = call.form,
              .grid = call.communicator != nullptr ? call.communicator->grid : ""})
      .add(bytes, end_ns - begin_ns);
}

}  // namespace

void count_host_call(const HostCall& call, std::uint64_t begin_ns) noexcept {
  try {
    add_host_call(call, begin_ns);
  } catch (const std::exception&) {
  }
}

namespace {

// A call that ran in a group: it stands under the group's plan.
void record_fused(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  report_row({.collective = operation.request.call.collective,
              .ranks = communicator.ranks,
              .size_class = size_class(prepared.payload),
              .plan = operation.membership.plan,
              .channels = operation.membership.channels,
              .reason = "",
              .form = Form::nonblocking,
              .grid = communicator.grid})
      .add(prepared.payload, monotonic_ns() - operation.begin_ns);
}

}  // namespace

void record_operation(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  if (operation.membership.plan != nullptr && prepared.row != nullptr) return record_fused(operation);
  const Form form = operation.persistence.space != nullptr ? Form::persistent : Form::nonblocking;
  ReportRow* row = row_of(communicator, operation.request, prepared, form);
  record(communicator, operation.request, prepared, row, operation.begin_ns);
}

}  // namespace plait::plugin
