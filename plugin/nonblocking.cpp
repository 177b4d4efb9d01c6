#include "plugin/nonblocking.h"

#include <exception>

#include "plugin/bootstrap.h"
#include "plugin/host.h"
#include "plugin/progress.h"
#include "plugin/reasons.h"

namespace plait {
namespace {

// What this thread posted last, for wait(). The program frees it only by completing its request.
struct Latest {
  const Operation* operation = nullptr;
  MPI_Request handle{};
};
thread_local constinit Latest latest __attribute__((tls_model("initial-exec")));

constexpr int most_own_turns = 256;

// The same on all ranks, as every reason is.
const char* why_host(Operation& operation) {
  if (operation.reason != nullptr) return operation.reason;
  if (!host_drives_progress()) return reasons::no_progress_hook;
  // The program may free its operator before the end, and only the host can keep it alive.
  if (operation.request.reducer == &operation.request.user.reducer()) return reasons::user_operator_posted;
  return nullptr;
}

bool calls_host(const Operation& operation) {
  constexpr auto mpi = std::uint32_t{1} << static_cast<unsigned>(ChannelKind::mpi);
  const Request& request = operation.request;
  const bool packed = request.input.type != nullptr && !request.input.direct;
  return packed || (operation.prepared->schedule.channels_used & mpi) != 0;
}

// Finds the plan; without `prepared` afterwards the host has the call, for `reason`.
void prepare_to_run(Operation& operation) {
  const Request& request = operation.request;
  auto prepared = operation.communicator->machinery->schedules.hold(
      {.call = request.call, .in_place = request.sharing != Sharing::none, .displacements = request.displacements});
  if (!prepared->accelerated) {
    operation.reason = prepared->too_long ? reasons::short_set_up : prepared->reason;
    return;
  }
  operation.prepared = std::move(prepared);
  operation.needs_host = calls_host(operation);
  detail::last_call = {.plan = operation.prepared->plan, .channels = operation.prepared->channels};
}

Admission admit_accelerated(Operation& operation) {
  prepare_to_run(operation);
  if (operation.prepared == nullptr) return Admission::host;
  operation.error = operation.types.hold(operation.request);
  return operation.error == MPI_SUCCESS ? Admission::taken : Admission::failed;
}

Admission admit_by_road(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  communicator.posts = true;
  switch (communicator.road) {
    case Road::accelerated:
      return admit_accelerated(operation);
    case Road::broken:
      operation.error = communicator.error != MPI_SUCCESS ? communicator.error : MPI_ERR_OTHER;
      return Admission::failed;
    case Road::waiting:
      ++communicator.eligible_calls;
      operation.reason = reasons::not_set_up_by_blocking;
      return Admission::host;
    default:
      operation.reason = communicator.host_reason;
      return Admission::host;
  }
}

// ---- The functions of a generalized request ----

int query(void* state, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return static_cast<Operation*>(state)->error;
}

int release(void* state) {
  give_back(static_cast<Operation*>(state));
  return MPI_SUCCESS;
}

// Collectives cannot be cancelled.
int cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

Admission admit(Operation& operation) {
  operation.reason = why_host(operation);
  if (operation.reason != nullptr) return Admission::host;
  try {
    return admit_by_road(operation);
  } catch (const std::exception& exception) {
    operation.error = error_code(Status(Code::unavailable, exception.what()));
    return Admission::failed;
  }
}

int give_request(Operation& operation, MPI_Request* request) {
  if (const int error = PMPI_Grequest_start(query, release, cancel, &operation, &operation.handle);
      error != MPI_SUCCESS) {
    give_back(&operation);
    return error;
  }
  // The operation may be complete, and its request of another thread's, before this returns.
  latest = {&operation, operation.handle};
  *request = operation.handle;
  hand_over(operation);
  return MPI_SUCCESS;
}

void record_operation(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  ReportRow* row = nullptr;
  if (prepared.row != nullptr)
    row = &report_row({.collective = operation.request.call.collective,
                       .ranks = communicator.ranks,
                       .size_class = size_class(prepared.payload),
                       .plan = prepared.plan,
                       .channels = prepared.channels,
                       .reason = prepared.reason,
                       .form = Form::nonblocking,
                       .grid = communicator.grid});
  record(communicator, operation.request, prepared, row, operation.begin_ns);
}

}  // namespace plait

namespace plait::door {

int wait(MPI_Request* request, MPI_Status* status) {
  if (latest.operation != nullptr && request != nullptr && *request == latest.handle) {
    const std::atomic<bool>& complete = latest.operation->complete;
    for (int turn = 0; turn < most_own_turns && !complete.load(std::memory_order_acquire); ++turn) progress();
    latest.operation = nullptr;
  }
  return host().wait(request, status);
}

}  // namespace plait::door
