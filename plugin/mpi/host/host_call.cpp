#include "plugin/mpi/host/host_call.h"

#include <atomic>
#include <exception>
#include <string>

#include "core/log.h"
#include "runtime/job/job.h"
#include "runtime/record/report_rows.h"
#include "tl/trace.h"

namespace plait::plugin {
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
              .size_class = lies_in_pieces(call.collective) ? -1 : size_class(bytes),
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

void note_lost_order(Collective collective, const Communicator& communicator, const char* reason) noexcept {
  note_order_of_host();
  static constinit std::atomic<bool> said{false};
  if (communicator.rank != 0 || said.exchange(true)) return;
  try {
    warn("PLAIT_REPRODUCIBLE=order: the host MPI combines a call of " + std::string(name(collective)) +
         " in an order of its own: " + (reason != nullptr ? reason : "") +
         "; the report counts such calls (PLAIT_REPORT=1)");
  } catch (const std::exception&) {
  }
}

}  // namespace plait::plugin
