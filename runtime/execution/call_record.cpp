#include "runtime/execution/call_record.h"

#include "runtime/job/job.h"
#include "runtime/record/node_counts.h"
#include "runtime/team/team.h"
#include "tl/shm/shared_heap.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// Whether peers can reach all of a call's data on this rank.
bool in_shared_heap(const Request& request) {
  const auto reachable = [](const Region& region) {
    return region.type == nullptr || region.bytes == 0 || (region.direct && SharedHeap::contains(region.address));
  };
  return reachable(request.input) && reachable(request.output);
}

// Of the call, whatever moves for it.
std::uint64_t payload_of(const Communicator& communicator, const Request& request, const PreparedCall& prepared) {
  if (lies_in_pieces(request.call.collective)) return request.call.count;
  return is_ordered(request) ? payload_bytes(request.call, communicator.ranks) : prepared.payload;
}

}  // namespace

// What an exchange moves differs from rank to rank, so that the ranks' rows would not be the same.
ReportRow* row_of(const Communicator& communicator, const Request& request, const PreparedCall& prepared, Form form) {
  const bool counted = on_neighbors(request.call.collective) ? reporting() : prepared.row != nullptr;
  if (!counted) return nullptr;
  return &report_row({.collective = request.call.collective,
                      .ranks = communicator.ranks,
                      .size_class = lies_in_pieces(request.call.collective)
                                        ? -1
                                        : size_class(payload_of(communicator, request, prepared)),
                      .plan = prepared.plan,
                      .channels = prepared.channels,
                      .reason = prepared.reason,
                      .form = form,
                      .grid = communicator.grid});
}

void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, ReportRow* row,
            std::uint64_t begin_ns) {
  const std::uint64_t end_ns = monotonic_ns();
  const bool pairs = lies_in_pieces(request.call.collective);
  const std::uint64_t payload = payload_of(communicator, request, prepared);
  if (row != nullptr) row->add(payload, end_ns - begin_ns);
  if (request.ordered != nullptr) note_ordered(payload);
  if (row != nullptr && prepared.saved_nanoseconds != 0) note_saved(prepared.saved_nanoseconds);
  if (communicator.rank == 0 && !pairs && payload >= large_call_bytes && communicator.team->routes().shared_memory())
    note_buffers(payload, in_shared_heap(request));
  if (communicator.team->trace != nullptr)
    communicator.team->trace->add({.begin_ns = begin_ns,
                                   .end_ns = end_ns,
                                   .bytes = payload,
                                   .plan = prepared.plan,
                                   .collective = request.call.collective});
}

}  // namespace plait::runtime
