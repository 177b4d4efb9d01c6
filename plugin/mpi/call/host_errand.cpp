#include "plugin/mpi/call/host_errand.h"

#include <exception>
#include <utility>

#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/request/persistent.h"

namespace plait::plugin {
namespace {

// Where the binding has not taken the function's place, it is the host's under its own name.
template <class Function>
Function* the_hosts(Function* saved, Function* named) {
  return saved != nullptr ? saved : named;
}

int code_of(const Status& status) { return status.ok() ? MPI_SUCCESS : error_code(status); }

}  // namespace

HostErrand::~HostErrand() {
  if (persistent && inner != MPI_REQUEST_NULL) the_hosts(host().request_free, &PMPI_Request_free)(&inner);
}

void HostErrand::bring() noexcept {
  try {
    not_brought_ = code_of(copies.bring());
  } catch (const std::exception& exception) {
    not_brought_ = error_code(status_of(exception));
  }
  if (not_brought_ != MPI_SUCCESS) copies.spoil();
}

int HostErrand::start() noexcept {
  bring();
  return the_hosts(host().start, &PMPI_Start)(&inner);
}

bool HostErrand::turn() noexcept {
  int flag = 0;
  error_ = the_hosts(host().test, &PMPI_Test)(&inner, &flag, MPI_STATUS_IGNORE);
  return flag != 0 || error_ != MPI_SUCCESS;
}

int HostErrand::end() noexcept {
  if (error_ != MPI_SUCCESS) return error_;
  if (not_brought_ != MPI_SUCCESS) return not_brought_;
  try {
    return code_of(copies.take());
  } catch (const std::exception& exception) {
    return error_code(status_of(exception));
  }
}

// Where nobody would look after it, the call is over when this returns.
int post_errand(std::unique_ptr<HostErrand> errand, Collective collective, MpiCommunicator* communicator,
                MPI_Request* request) {
  if (communicator == nullptr || !host_drives_progress()) {
    const int error = the_hosts(host().wait, &PMPI_Wait)(&errand->inner, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) return error;
    *request = MPI_REQUEST_NULL;
    return errand->end();
  }
  MpiOperation& operation = *take_operation(*communicator, collective);
  operation.errand = std::move(errand);
  operation.needs_host = true;
  return give_request(operation, request);
}

int make_errand(std::unique_ptr<HostErrand> errand, Collective collective, MpiCommunicator* communicator,
                MPI_Request* request) {
  if (communicator == nullptr || !host_drives_progress())
    return argument_error_code({Code::unsupported,
                                "a persistent collective on memory of a device, which the MPI "
                                "library does not know and whose progress Plait cannot follow"});
  MpiOperation& operation = *take_operation(*communicator, collective);
  operation.errand = std::move(errand);
  return make_host_request(operation, request);
}

}  // namespace plait::plugin
