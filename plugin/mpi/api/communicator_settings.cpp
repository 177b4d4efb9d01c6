#include "plugin/mpi/api/communicator_settings.h"

#include <new>

#include "core/log.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/communicator/leave_call.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "runtime/call/chosen_channels.h"
#include "runtime/call/forced_plan.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

// nullptr: Plait has none of its calls.
MpiCommunicator* find_served(MPI_Comm comm) {
  if (phase() == Phase::before && host().allreduce != nullptr) start_late();
  return phase() == Phase::open ? find_communicator(comm) : nullptr;
}

int code_of(MpiCommunicator& communicator, const Answer& answer) {
  switch (answer.what) {
    case Answer::What::done:
      return MPI_SUCCESS;
    case Answer::What::refused:
      return MPI_ERR_ARG;
    case Answer::What::left:
      return leave_call(communicator.handle, &communicator, std::bad_alloc());
    default:
      return raise_error(communicator.handle, answer.error);
  }
}

}  // namespace

int force_plan(MPI_Comm comm, const char* plan) {
  MpiCommunicator* communicator = find_served(comm);
  if (communicator != nullptr) return code_of(*communicator, runtime::force_plan(*communicator, plan));
  if (*plan == '\0') return MPI_SUCCESS;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == 0) warn("plait_set_plan: Plait does not run in this job");
  return MPI_ERR_ARG;
}

int choose_channels(MPI_Comm comm, const char* channels) {
  MpiCommunicator* communicator = find_served(comm);
  if (communicator == nullptr) return MPI_SUCCESS;
  if (communicator->inter) return MPI_ERR_ARG;
  MpiOob all = MpiOob::of_program(comm);
  return code_of(*communicator, runtime::choose_channels(*communicator, all, channels));
}

}  // namespace plait::plugin
