#include "plugin/nonblocking.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "plugin/bootstrap.h"
#include "plugin/host.h"
#include "plugin/progress.h"
#include "plugin/set_up_task.h"

namespace plait {
namespace {

// Which this thread posted last, for wait(). The program frees it only by completing its request.
thread_local constinit Operation* latest __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit MPI_Request latest_handle __attribute__((tls_model("initial-exec"))) = MPI_REQUEST_NULL;

constexpr int most_own_turns = 256;

constinit std::atomic<int> kept_calls{0};  // of all communicators

struct FreedOperators {
  std::mutex guard;
  std::vector<MPI_Op> handles;
};
FreedOperators& freed_operators() {
  static auto* all = new FreedOperators;  // never destroyed: calls may come until the process ends
  return *all;
}

Admission fail(Operation& operation, const std::exception& exception) {
  operation.error = error_code(Status(Code::unavailable, exception.what()));
  return Admission::failed;
}

void free_operators() {
  std::vector<MPI_Op> handles;
  {
    const std::scoped_lock lock(freed_operators().guard);
    handles.swap(freed_operators().handles);
  }
  for (MPI_Op& handle : handles) host().op_free(&handle);
}

void keep(Communicator& communicator) {
  communicator.operations.kept.fetch_add(1, std::memory_order_relaxed);
  kept_calls.fetch_add(1, std::memory_order_relaxed);
}

// For calls of any length: a second set-up would only make more calls wait.
Admission begin_set_up(Communicator& communicator) {
  communicator.operations.set_up = std::make_unique<SetUpTask>(communicator);
  communicator.road = Road::preparing;
  return Admission::kept;
}

// The call that makes the communicator worth its set-up begins it; those before it are the host's.
Admission admit_waiting(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  if (operation.reason != nullptr) return Admission::host;
  if (++communicator.eligible_calls < process().config.setup_calls) {
    operation.reason = "not set up yet";
    return Admission::host;
  }
  return begin_set_up(communicator);
}

Admission admit_accelerated(Operation& operation) {
  if (operation.reason == nullptr) prepare_to_run(operation);
  if (operation.prepared == nullptr) return Admission::host;
  if (!operation.prepared->too_long) return Admission::taken;
  operation.prepared.reset();
  return begin_set_up(*operation.communicator);
}

bool calls_host(const Operation& operation) {
  constexpr auto mpi = std::uint32_t{1} << static_cast<unsigned>(ChannelKind::mpi);
  const Request& request = operation.request;
  const bool packed = request.input.type != nullptr && !request.input.direct;
  return packed || (operation.prepared->schedule.channels_used & mpi) != 0;
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
  Communicator& communicator = *operation.communicator;
  if (!host_drives_progress()) {
    operation.reason = "the MPI library has no hook for progress";
    return Admission::host;
  }
  // The program may free its operator before the end, and only the host can keep it alive.
  if (operation.reason == nullptr && operation.request.reducer == &operation.request.user.reducer())
    operation.reason = "user-defined operator in a call that does not block";
  try {
    // Another thread is about to settle the communicator: what it kept comes first.
    if (communicator.road != Road::preparing && communicator.operations.kept.load(std::memory_order_acquire) != 0)
      finish_set_up(communicator);
    Admission admission = Admission::host;
    switch (communicator.road.load()) {
      case Road::waiting:
        admission = admit_waiting(operation);
        break;
      case Road::preparing:
        admission = Admission::kept;
        break;
      case Road::accelerated:
        admission = admit_accelerated(operation);
        break;
      case Road::host:
        operation.reason = communicator.host_reason;
        break;
      case Road::broken:
        operation.error = communicator.error != MPI_SUCCESS ? communicator.error : MPI_ERR_OTHER;
        return Admission::failed;
    }
    const bool ours = admission == Admission::kept || admission == Admission::taken;
    if (ours && operation.reason == nullptr) {
      operation.error = operation.types.hold(operation.request);
      if (operation.error != MPI_SUCCESS) return Admission::failed;
    }
    if (admission == Admission::kept) keep(communicator);
    return admission;
  } catch (const std::exception& exception) {
    return fail(operation, exception);
  }
}

void let_go(Communicator& communicator) {
  communicator.operations.kept.fetch_sub(1, std::memory_order_release);
  if (kept_calls.fetch_sub(1, std::memory_order_acq_rel) == 1) free_operators();
}

void prepare_to_run(Operation& operation) {
  const Request& request = operation.request;
  auto prepared = operation.communicator->machinery->schedules.hold(
      {.call = request.call, .in_place = request.sharing != Sharing::none, .displacements = request.displacements});
  if (!prepared->accelerated && !prepared->too_long) {
    operation.reason = prepared->reason;
    return;
  }
  operation.prepared = std::move(prepared);
  if (operation.prepared->too_long) return;
  operation.needs_host = calls_host(operation);
  detail::last_call = {.plan = operation.prepared->plan, .channels = operation.prepared->channels};
}

int give_request(Operation& operation, MPI_Request* request) {
  // The operation may be complete, and its request of another thread's, before this returns.
  if (const int error = PMPI_Grequest_start(query, release, cancel, &operation, &operation.handle);
      error != MPI_SUCCESS) {
    give_back(&operation);
    return error;
  }
  latest = &operation;
  *request = latest_handle = operation.handle;
  hand_over(operation);
  return MPI_SUCCESS;
}

void record_operation(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  const Form form = operation.persistent != nullptr ? Form::persistent : Form::nonblocking;
  ReportRow* row = nullptr;
  if (prepared.row != nullptr)
    row = &report_row({.collective = operation.request.call.collective,
                       .ranks = communicator.ranks,
                       .size_class = size_class(prepared.payload),
                       .plan = prepared.plan,
                       .channels = prepared.channels,
                       .reason = prepared.reason,
                       .form = form,
                       .grid = communicator.grid});
  record(communicator, operation.request, prepared, row, operation.begin_ns);
}

}  // namespace plait

namespace plait::door {

int wait(MPI_Request* request, MPI_Status* status) {
  if (request != nullptr && *request == latest_handle && *request != MPI_REQUEST_NULL) {
    const std::atomic<bool>& complete = latest->complete;
    for (int turn = 0; turn < most_own_turns && !complete.load(std::memory_order_acquire); ++turn) progress();
    latest_handle = MPI_REQUEST_NULL;
  }
  return host().wait(request, status);
}

int op_free(MPI_Op* op) {
  if (kept_calls.load(std::memory_order_acquire) == 0 || op == nullptr || predefined_op(*op)) return host().op_free(op);
  const std::scoped_lock lock(freed_operators().guard);
  freed_operators().handles.push_back(*op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

}  // namespace plait::door
