#include "plugin/mpi/request/persistent.h"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "plugin/layer.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/persistent_receive.h"
#include "plugin/mpi/request/persistent_requests.h"
#include "plugin/mpi/types/layout.h"
#include "runtime/call/made_communicator.h"
#include "runtime/execution/decide.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/persistent_set_up.h"
#include "runtime/progress/persistent_space.h"
#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

using State = Persistence::State;

// The program has freed the request, perhaps before the end.
void let_go(MpiOperation& operation) {
  State state = State::active;
  if (!operation.persistence.state.compare_exchange_strong(state, State::freed)) forget(operation);
  take_down_abandoned();
}

// False, with a reason, where the host must take the call.
bool prepare(MpiOperation& operation) {
  try {
    if (prepare_to_run(operation, Form::persistent).what != Decision::What::run) return false;
    if (!lies_in_pieces(operation.request.call.collective) && !runs_ordered(operation)) {
      operation.execution.staging = lay_out(operation.request, operation.prepared->schedule, operation.memory);
      operation.laid_out = true;
    }
    if (operation.types.hold(operation.request) == MPI_SUCCESS) return true;
    operation.reason = "a datatype could not be kept";
  } catch (const std::exception&) {
    operation.reason = reasons::no_persistent_memory;
  }
  return false;
}

// All ranks make it or none does: then it says why.
const char* make_space(MpiCommunicator& communicator) {
  std::shared_ptr<PersistentSpace> made;
  bool driven = false;
  try {
    driven = host_drives_progress();
    take_down_abandoned();
    // Off the list of progress() before it goes.
    auto stand_in = std::make_unique<MpiCommunicator>(communicator.handle);
    stand_in->channels = communicator.channels;
    made = {new PersistentSpace(std::move(stand_in)), [](PersistentSpace* space) {
              own_progress().remove_space(*space);
              delete space;
            }};
  } catch (const std::exception&) {
  }
  const int mine = made != nullptr ? 1 : 0;
  int all = 0;
  if (host().allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, communicator.handle) != MPI_SUCCESS || all == 0)
    return reasons::no_persistent_memory;
  if (!driven) return reasons::no_progress_hook;
  made->open(connect_space(made->communicator()));
  if (is_set_up(made->communicator())) {
    if (communicator.handle == MPI_COMM_WORLD) keep_starts_to_schedule(made->communicator());
    own_progress().add_space(*made);
  }
  communicator.persistent = std::move(made);
  return nullptr;
}

// What the program will hold, and by which it will be found. Returns an MPI error code.
int make_handle(MpiOperation& operation) {
  try {
    const int error = of_binding() ? host().make_persistent_request(operation) : make_receive(operation.persistence);
    if (error != MPI_SUCCESS) return error;
    enlist(operation);
    return MPI_SUCCESS;
  } catch (const std::exception& exception) {
    return error_code(status_of(exception));
  }
}

// Tells the host that the program's request is active now.
int activate(MpiOperation& operation, MPI_Request* request) {
  if (of_binding()) return MPI_SUCCESS;  // it knows
  if (const int error = start_receive(request); error != MPI_SUCCESS) return error;
  if (*request == operation.persistence.handle) return MPI_SUCCESS;
  if (Recorder* to = recorder(); to != nullptr) [[unlikely]]
    to->rename(key_of(operation.persistence.handle), key_of(*request));
  rename(operation, *request);
  return MPI_SUCCESS;
}

// Where memory is short for it, what the start is to come after is what the call that made it came after.
void follow_device(MpiOperation& operation) {
  try {
    follow_program(operation.request, operation.memory);
  } catch (const std::exception&) {
  }
}

// The host begins before the program's request is active: what fails then is the start's.
int start_errand(MpiOperation& operation, MPI_Request* request) {
  const int started = operation.errand->start();
  if (started != MPI_SUCCESS) return raise_error_of_call(raising(*operation.communicator), started);
  if (const int error = activate(operation, request); error != MPI_SUCCESS) return error;
  operation.error = MPI_SUCCESS;
  operation.complete.store(false, std::memory_order_relaxed);
  operation.persistence.state.store(State::active, std::memory_order_relaxed);
  own_progress().hand_over(operation);
  return MPI_SUCCESS;
}

int start_one(MpiOperation& operation, MPI_Request* request) {
  Persistence& persistence = operation.persistence;
  if (persistence.state.load(std::memory_order_acquire) != State::inactive)
    return of_binding() ? MPI_ERR_REQUEST : host().start(request);
  if (operation.errand != nullptr) [[unlikely]]
    return start_errand(operation, request);
  Communicator& communicator = *operation.communicator;
  if (is_broken(communicator))
    return raise_error(raising(communicator), communicator.error != MPI_SUCCESS ? communicator.error : MPI_ERR_OTHER);
  if (const int error = activate(operation, request); error != MPI_SUCCESS) return error;
  operation.execution.at_rest = operation.running = operation.failed = false;
  operation.error = MPI_SUCCESS;
  operation.begin_ns = reporting() ? monotonic_ns() : 0;
  operation.complete.store(false, std::memory_order_relaxed);
  persistence.state.store(State::active, std::memory_order_relaxed);
  if (Grouping* grouping = communicator.grouping.get(); grouping != nullptr) [[unlikely]] {
    operation.membership = {};
    grouping->note_request(key_of(persistence.handle), operation);
  }
  note_call({.plan = operation.prepared->plan, .channels = operation.prepared->channels});
  note_latest(operation, persistence.handle);
  if (on_device(operation.request)) follow_device(operation);
  own_progress().hand_over_start(operation);
  return MPI_SUCCESS;
}

}  // namespace

PersistentSpace* persistent_space(MpiCommunicator& communicator, const char*& reason) {
  reason = communicator.host_reason;
  if (communicator.inter || communicator.ranks == 1) return nullptr;
  if (hosts_for_good(communicator)) return nullptr;
  if (communicator.persistent == nullptr)
    if (reason = make_space(communicator); reason != nullptr) return nullptr;
  take_down_abandoned();
  PersistentSpace& space = *communicator.persistent;
  reason = space.communicator().host_reason;
  return hosts_for_good(space.communicator()) ? nullptr : &space;
}

int make_host_request(MpiOperation& operation, MPI_Request* request) {
  operation.persistence.conclude_start = conclude_start;
  operation.needs_host = true;
  const int error = make_handle(operation);
  if (error == MPI_SUCCESS)
    *request = operation.persistence.handle;
  else
    forget(operation);
  return error;
}

void decline_request(PersistentSpace& space) { static_cast<void>(space.take_slot(nullptr, false)); }

int make_request(MpiOperation& operation, PersistentSpace& space, MPI_Request* request) {
  Persistence& persistence = operation.persistence;
  operation.space = operation.communicator->persistent;
  persistence.conclude_start = conclude_start;
  operation.communicator = &space.communicator();
  const bool wanted = operation.reason == nullptr && prepare(operation);
  const auto slot = space.take_slot(&operation, wanted);
  if (!slot) {
    if (operation.reason == nullptr) operation.reason = reasons::no_persistent_slot;
    operation.space.reset();
    return MPI_SUCCESS;
  }
  operation.slot = *slot;
  operation.reason = nullptr;
  const int error = make_handle(operation);
  if (error != MPI_SUCCESS) {
    own_progress().leave_out(space.communicator(), error);
    space.note_failure();
    forget(operation);
    return error;
  }
  note_call({.plan = operation.prepared->plan, .channels = operation.prepared->channels});
  *request = operation.persistence.handle;
  return MPI_SUCCESS;
}

void request_freed(MPI_Request handle) {
  if (Recorder* to = recorder(); to != nullptr) [[unlikely]]
    to->forget(key_of(handle));
  MpiOperation* operation = find(handle);
  if (operation == nullptr) return;
  strike_out(handle);
  let_go(*operation);
}

void finish_persistent() {
  own_progress().progress();  // what the helper thread has left
  const std::vector<MpiOperation*> left = take_all();
  std::vector<std::shared_ptr<PersistentSpace>> spaces;
  for (MpiOperation* operation : left)
    if (operation->persistence.state.load() == State::inactive)
      forget(*operation);
    else
      spaces.push_back(operation->space);  // it is still among those that progress() moves on
  take_down_abandoned();
}

}  // namespace plait::plugin

namespace plait::plugin::binding {

namespace {

int start_unrecorded(MPI_Request* request) {
  MpiOperation* operation = request != nullptr ? find(*request) : nullptr;
  return operation != nullptr ? start_one(*operation, request) : host().start(request);
}

int start_all_unrecorded(int count, MPI_Request requests[]) {
  if (!any_persistent() || requests == nullptr) return host().startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i)
    if (const int error = start_unrecorded(&requests[i]); error != MPI_SUCCESS) code = error;
  return code;
}

}  // namespace

int start(MPI_Request* request) {
  if (Recorder* to = recorder(); to != nullptr && request != nullptr) [[unlikely]]
    to->add_start(key_of(*request), monotonic_ns());
  return start_unrecorded(request);
}

int startall(int count, MPI_Request requests[]) {
  if (Recorder* to = recorder(); to != nullptr && requests != nullptr) [[unlikely]]
    for (int i = 0; i < count; ++i) to->add_start(key_of(requests[i]), monotonic_ns());
  return start_all_unrecorded(count, requests);
}

int request_free(MPI_Request* request) {
  if (Recorder* to = recorder(); to != nullptr && request != nullptr) [[unlikely]]
    to->forget(key_of(*request));
  MpiOperation* operation = request != nullptr ? find(*request) : nullptr;
  if (operation == nullptr) return host().request_free(request);
  strike_out(operation->persistence.handle);
  const int error = host().request_free(request);
  let_go(*operation);
  return error;
}

}  // namespace plait::plugin::binding
