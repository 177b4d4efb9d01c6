#include "plugin/mpi/request/members.h"

#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/host/host.h"

namespace plait::plugin {

Status MpiMembers::part(bool takes_part) {
  int rank = 0;
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_rank(comm_, &rank);
  if (host().comm_split(comm_, takes_part ? 0 : MPI_UNDEFINED, rank, &made) != MPI_SUCCESS)
    return {Code::unavailable, "no communicator of the ranks that take part could be made"};
  if (!takes_part) return {};
  oob_.take(made);
  PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return {};
}

std::unique_ptr<Communicator> MpiMembers::make_communicator() {
  return std::make_unique<MpiCommunicator>(oob_.handle());
}

}  // namespace plait::plugin
