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

// Only the preload binding has those of its own.
int test(MPI_Request* request, int* flag) {
  return (host().test != nullptr ? host().test : &PMPI_Test)(request, flag, MPI_STATUS_IGNORE);
}

int code_of(const Status& status) { return status.ok() ? MPI_SUCCESS : error_code(status); }

}  // namespace

HostErrand::~HostErrand() {
  if (persistent && inner != MPI_REQUEST_NULL) host().request_free(&inner);
}

int HostErrand::start() noexcept {
  try {
    const int brought = code_of(copies.bring());
    return brought == MPI_SUCCESS ? host().start(&inner) : brought;
  } catch (const std::exception& exception) {
    return error_code(status_of(exception));
  }
}

bool HostErrand::turn() noexcept {
  int flag = 0;
  error_ = test(&inner, &flag);
  return flag != 0 || error_ != MPI_SUCCESS;
}

int HostErrand::end() noexcept {
  if (error_ != MPI_SUCCESS) return error_;
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
    if (const int error = host().wait(&errand->inner, MPI_STATUS_IGNORE); error != MPI_SUCCESS) return error;
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
