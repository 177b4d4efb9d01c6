#include "plugin/mpi/communicator/leave_call.h"

#include <new>

#include "plugin/mpi/host/errors.h"
#include "runtime/progress/progress.h"

namespace plait::plugin {

int leave_call(MPI_Comm comm, MpiCommunicator* communicator, const std::exception& exception) noexcept {
  int error = MPI_ERR_NO_MEM;
  if (dynamic_cast<const std::bad_alloc*>(&exception) == nullptr) error = error_code(status_of(exception));
  if (communicator != nullptr) communicator->progress.leave_out(*communicator, error);
  return raise_error_of_call(comm, error);
}

}  // namespace plait::plugin
