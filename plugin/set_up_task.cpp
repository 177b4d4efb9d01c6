#include "plugin/set_up_task.h"

#include <utility>

#include "plugin/cooperation.h"
#include "plugin/private_communicator.h"
#include "plugin/request.h"

namespace plait {

SetUpTask::SetUpTask(Communicator& communicator)
    : communicator_(communicator),
      made_(Status(Code::internal, "the set-up has not ended")),
      fiber_([this] { run(); }) {
  if (communicator.machinery == nullptr)
    failed_ = PMPI_Comm_idup(communicator.handle, &duplicate_, &duplicating_) != MPI_SUCCESS;
}

void SetUpTask::run() {
  if (failed_ || wait_for(duplicating_) != MPI_SUCCESS) {
    made_ = Status(Code::unavailable, "no communicator of our own could be made");
    return;
  }
  if (duplicate_ != MPI_COMM_NULL) PMPI_Comm_set_errhandler(duplicate_, MPI_ERRORS_RETURN);
  made_ = set_up(communicator_, Extent::all_calls, std::move(communicator_.machinery), PrivateCommunicator(duplicate_));
}

std::optional<Road> SetUpTask::advance() {
  if (!fiber_.resume()) return std::nullopt;
  return settle(communicator_, std::move(made_));
}

}  // namespace plait
