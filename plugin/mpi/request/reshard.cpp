#include "plugin/mpi/request/reshard.h"

#include <string>

#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "plugin/mpi/request/members.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/layout.h"

namespace plait::plugin {
namespace {

Status bad_element(const char* what) { return {Code::invalid, std::string("element: ") + what}; }

// A request that is complete: of a rank that has nothing to do, or has done it.
int complete_at_once(MPI_Request* request) {
  return PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, quiet_communicator(), request);
}

}  // namespace

Status read_element(MPI_Datatype element, std::size_t& bytes) {
  if (element == MPI_DATATYPE_NULL) return bad_element("MPI_DATATYPE_NULL");
  int size = 0;
  if (PMPI_Type_size(element, &size) != MPI_SUCCESS || size <= 0) return bad_element("has no bytes");
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_extent(element, &lower, &extent);
  if (lower != 0 || extent != size || !is_contiguous(element)) return bad_element("is not contiguous");
  bytes = static_cast<std::size_t>(size);
  return {};
}

Result<std::unique_ptr<Resharding>> make_resharding(MPI_Comm comm, const ReshardArguments& arguments) {
  MpiOob all = MpiOob::of_program(comm);
  return Resharding::make(all, arguments, [comm] { return std::make_unique<MpiMembers>(comm); });
}

// The members are all of this kind here.
MPI_Comm comm_of(Resharding& resharding) { return static_cast<MpiMembers&>(resharding.members()).comm(); }

int execute(Resharding& resharding, const void* source, void* destination) {
  const int error = resharding.execute(source, destination);
  return error == MPI_SUCCESS ? error : raise_error(comm_of(resharding), error);
}

int start(Resharding& resharding, const void* source, void* destination, MPI_Request* request) {
  if (!resharding.is_shared()) {
    const int error = execute(resharding, source, destination);
    return error == MPI_SUCCESS ? complete_at_once(request) : error;
  }
  const MPI_Comm comm = comm_of(resharding);
  Communicator& communicator = resharding.communicator();
  if (is_broken(communicator)) return raise_error(comm, communicator.error);
  MpiOperation* operation = take_operation(communicator, Collective::reshard);
  if (const char* reason = why_host(*operation); reason != nullptr) {
    give_back(operation);
    return raise_error(comm, Status(Code::unsupported, std::string("plait_reshard_start: ") + reason));
  }
  resharding.prepare(*operation, source, destination);
  const int error = give_request(*operation, request);
  return error == MPI_SUCCESS ? error : raise_error(comm, error);
}

}  // namespace plait::plugin
