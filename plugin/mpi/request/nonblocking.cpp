#include "plugin/mpi/request/nonblocking.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "plugin/layer.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/progress.h"
#include "runtime/call/made_communicator.h"
#include "runtime/fusion/fusion.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/awaited_calls.h"
#include "runtime/progress/prepare_operation.h"
#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// What this thread posted last, for wait(). The program frees it only by completing its request.
struct Latest {
  MpiOperation* operation = nullptr;
  MPI_Request handle{};
};
thread_local constinit Latest latest __attribute__((tls_model("initial-exec")));

const char* why_unfit(const MpiOperation& operation) {
  const char* reason = why_host(operation);
  if (reason != nullptr || !on_neighbors(operation.request.call.collective)) return reason;
  return why_not_among_neighbors(*operation.communicator);
}

// In its callers, for the sake of short calls.
[[gnu::always_inline]] inline Decision decide_on(MpiOperation& operation, Form form) {
  return prepare_operation(operation, form, why_unfit(operation));
}

Admission enlist_and_hold(MpiOperation& operation, const Decision& decision) {
  Communicator& communicator = *operation.communicator;
  Grouping* grouping = decision.prepared != nullptr ? grouping_of(communicator) : communicator.grouping.get();
  if (grouping != nullptr) grouping->enlist(operation);
  if (decision.what != Decision::What::run) return Admission::host;
  operation.error = operation.types.hold(operation.request);
  if (operation.error == MPI_SUCCESS) return Admission::taken;
  own_progress().leave_out(*operation.communicator, operation.error);
  return Admission::failed;
}

// While the communicator waits to be set up it is an eligible call, too.
void note_post(Communicator& communicator) {
  communicator.posts = true;
  communicator.made_of_it = 0;
  if (waits_for_set_up(communicator)) note_waiting_post(communicator);
}

Admission admit_as_decided(MpiOperation& operation) {
  Communicator& communicator = *operation.communicator;
  const Decision decision = decide_on(operation, Form::nonblocking);
  if (decision.eligible) note_post(communicator);
  if (decision.what != Decision::What::fail) return enlist_and_hold(operation, decision);
  operation.error = communicator.error != MPI_SUCCESS ? communicator.error : MPI_ERR_OTHER;
  return Admission::failed;
}

// ---- The functions of a generalized request ----

// Called in the program's thread that finds the request complete.
int query(void* state, MPI_Status* status) {
  Fusion::note_found_complete(*static_cast<const MpiOperation*>(state));
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return static_cast<MpiOperation*>(state)->error;
}

// MPICH calls it from MPI_Request_free, even before the end.
int release(void* state) {
  auto* operation = static_cast<MpiOperation*>(state);
  if (latest.operation == operation) latest = {};
  operation->handle = MPI_REQUEST_NULL;
  operation->abandoned = !own_progress().told(*operation);
  if (!operation->abandoned) give_back(operation);
  return MPI_SUCCESS;
}

// Collectives cannot be cancelled.
int cancel(void*, int) { return MPI_SUCCESS; }

#if defined(OPEN_MPI)

int start_generalized_request(MpiOperation& operation) {
  return PMPI_Grequest_start(query, release, cancel, &operation, &operation.handle);
}

#else

int poll(void*, MPI_Status*) {
  progress_of_both();
  return MPI_SUCCESS;
}

int wait_for_all(int count, void** states, double, MPI_Status*) {
  for (int i = 0; i < count; ++i)
    while (!own_progress().told(*static_cast<MpiOperation*>(states[i]))) progress_of_both();
  return MPI_SUCCESS;
}

// One without a function that waits ends the job in MPICH 4.0's MPI_Waitall, when MPI_REQUEST_NULL stands beside it and
// it is not complete yet.
int start_generalized_request(MpiOperation& operation) {
  return PMPIX_Grequest_start(query, release, cancel, poll, wait_for_all, &operation, &operation.handle);
}

#endif

int start_request(MpiOperation& operation) {
  if (host().start_request != nullptr) return host().start_request(operation);
  if (operation.handle != MPI_REQUEST_NULL) return MPI_SUCCESS;
  return start_generalized_request(operation);
}

// A persistent request is the host's to complete; it finds that done already.
void await_start(const MpiOperation& operation) {
  constexpr int most_turns = 256;
  for (int turns = 0; turns < most_turns && !operation.complete.load(std::memory_order_acquire); ++turns)
    own_progress().progress();
}

// Whether the request of the operation is done with, without the host.
bool wait_without_host(MpiOperation& operation, MPI_Status* status) {
  if (!own_progress().complete_untold(operation)) return false;
  if (operation.error != MPI_SUCCESS) {
    operation.tell();
    return false;
  }
  if (status != MPI_STATUS_IGNORE) query(&operation, status);
  give_back(&operation);
  return true;
}

}  // namespace

const char* why_host(const MpiOperation& operation) {
  if (operation.reason != nullptr) return operation.reason;
  if (!host_drives_progress()) return reasons::no_progress_hook;
  // The program may free its operator before the end, and only the host can keep it alive.
  if (operation.request.user != nullptr) return reasons::user_operator_posted;
  return nullptr;
}

Decision prepare_to_run(MpiOperation& operation, Form form) { return decide_on(operation, form); }

bool post_stays_with_host(Communicator& communicator) noexcept {
  if (waits_for_set_up(communicator)) note_post(communicator);
  return waits_for_set_up(communicator) || hosts_for_good(communicator);
}

void note_latest(MpiOperation& operation, MPI_Request handle) { latest = {&operation, handle}; }

namespace {

Admission admit_or_leave_out(MpiOperation& operation) {
  try {
    return admit_as_decided(operation);
  } catch (const std::exception& exception) {
    operation.error = error_code(status_of(exception));
    own_progress().leave_out(*operation.communicator, operation.error);
    return Admission::failed;
  }
}

}  // namespace

Admission admit(MpiOperation& operation) {
  const Admission admission = admit_or_leave_out(operation);
  const bool counted = job().overlaps() && operation.request.call.collective == Collective::allreduce;
  if (counted && admission == Admission::host) OverlapCounts::instance().count_alone(operation.reason);
  return admission;
}

int give_request(MpiOperation& operation, MPI_Request* request) {
  if (const int error = start_request(operation); error != MPI_SUCCESS) {
    own_progress().leave_out(*operation.communicator, error);
    give_back(&operation);
    return error;
  }
  // The operation may be complete, and its request of another thread's, before this returns.
  note_latest(operation, operation.handle);
  *request = operation.handle;
  Grouping* grouping = operation.membership.enlisted ? operation.communicator->grouping.get() : nullptr;
  if (grouping != nullptr) grouping->note_request(key_of(operation.handle), operation);
  own_progress().hand_over(operation);
  if (grouping != nullptr) grouping->note_posted();
  return MPI_SUCCESS;
}

void free_idle_requests() {
  if (!waits_come_here()) return;
  own_progress().progress();  // one may be complete whose request, which the program has freed, does not know
  for (MpiOperation* operation = take_idle_operations(); operation != nullptr;) {
    auto* next = static_cast<MpiOperation*>(operation->next);
    MPI_Request handle = operation->handle;
    if (handle == MPI_REQUEST_NULL) {
      give_back(operation);
    } else {
      operation->complete.store(true, std::memory_order_relaxed);
      PMPI_Grequest_complete(handle);
      PMPI_Request_free(&handle);  // releases the operation
    }
    operation = next;
  }
}

}  // namespace plait::plugin

namespace plait::plugin::binding {

namespace {

// Those of the requests that the call has completed were waited for in it. Persistent ones stay what they are: of these
// done(i) says so, after the call.
template <class Call, class Done>
int recorded(Recorder& to, int count, MPI_Request* requests, Call&& call, Done&& done) {
  std::vector<std::uint64_t> before;
  try {
    for (int i = 0; requests != nullptr && i < count; ++i) before.push_back(key_of(requests[i]));
  } catch (const std::exception&) {
    return call();
  }
  const std::uint64_t begin_ns = monotonic_ns();
  const int code = call();
  const Span time{.begin_ns = begin_ns, .end_ns = monotonic_ns()};
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != key_of(MPI_REQUEST_NULL) &&
        (requests[i] == MPI_REQUEST_NULL || (code == MPI_SUCCESS && done(static_cast<int>(i)))))
      to.add_wait(before[i], time);
  return code;
}

// Whether a request's number is in the list that the call has filled, whose length is MPI_UNDEFINED, below 0, where it
// had none to look at.
auto among(const int* completed, const int* indices) {
  return [=](int i) { return *completed > 0 && std::find(indices, indices + *completed, i) != indices + *completed; };
}

void note_wait_for_all(int count, const MPI_Request* requests) {
  if (!job().watches_waits() || requests == nullptr) return;
  for (int i = 0; i < count; ++i) AwaitedCalls::note_wait_for(key_of(requests[i]));
}

int wait_unrecorded(MPI_Request* request, MPI_Status* status) {
  if (request != nullptr) AwaitedCalls::note_wait_for(key_of(*request));
  if (latest.operation != nullptr && request != nullptr && *request == latest.handle) {
    MpiOperation& operation = *std::exchange(latest, {}).operation;
    // Another thread may have waited for it, and it may be in use again.
    const bool same = operation.handle == *request;
    if (operation.persistence.handle == *request) await_start(operation);
    if (same && wait_without_host(operation, status)) {
      *request = MPI_REQUEST_NULL;
      return MPI_SUCCESS;
    }
  }
  return host().wait(request, status);
}

}  // namespace

int wait(MPI_Request* request, MPI_Status* status) {
  if (Recorder* to = recorder(); to != nullptr) [[unlikely]]
    return recorded(
        *to, 1, request, [&] { return wait_unrecorded(request, status); }, [](int) { return true; });
  return wait_unrecorded(request, status);
}

int waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  note_wait_for_all(count, requests);
  const auto call = [&] { return host().waitall(count, requests, statuses); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, count, requests, call, [](int) { return true; });
}

int waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const auto call = [&] { return host().waitany(count, requests, index, status); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, count, requests, call, [&](int i) { return i == *index; });
}

int waitsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  const auto call = [&] { return host().waitsome(count, requests, completed, indices, statuses); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, count, requests, call, among(completed, indices));
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  const auto call = [&] { return host().test(request, flag, status); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, 1, request, call, [&](int) { return *flag != 0; });
}

int testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  const auto call = [&] { return host().testall(count, requests, flag, statuses); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, count, requests, call, [&](int) { return *flag != 0; });
}

int testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  const auto call = [&] { return host().testany(count, requests, index, flag, status); };
  Recorder* to = recorder();
  return to == nullptr ? call()
                       : recorded(*to, count, requests, call, [&](int i) { return *flag != 0 && i == *index; });
}

int testsome(int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]) {
  const auto call = [&] { return host().testsome(count, requests, completed, indices, statuses); };
  Recorder* to = recorder();
  return to == nullptr ? call() : recorded(*to, count, requests, call, among(completed, indices));
}

}  // namespace plait::plugin::binding
