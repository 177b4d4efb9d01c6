// The arguments of the neighbourhood collectives, for runtime/arguments.
#include "plugin/mpi/call/arguments.h"
#include "plugin/mpi/call/mpi_arguments.h"
#include "plugin/mpi/communicator/communicator.h"
#include "runtime/arguments/neighbor_pieces.h"
#include "runtime/progress/persistent_space.h"

namespace plait::plugin {
namespace {

// nullptr: the communicator is not set up yet, so that nobody runs the call here.
const Neighbors* neighbors_in(const Communicator& communicator) {
  const auto known = [](const Communicator& one) { return one.team != nullptr && one.team->neighborhood != nullptr; };
  if (known(communicator)) return &mpi_of(communicator).neighbors;
  if (communicator.persistent == nullptr) return nullptr;
  const Communicator& stand_in = communicator.persistent->communicator();
  return known(stand_in) ? &mpi_of(stand_in).neighbors : nullptr;
}

Elements in_a_row(const void* address, int count, MPI_Datatype type) {
  return {place_of(address), count, layout_of(address, type)};
}

// What a rank gives to all of its neighbours: of a type that is significant only where there are some.
Elements for_all(const Neighbors* neighbors, const void* address, int count, MPI_Datatype type) {
  const bool significant = neighbors != nullptr && neighbors->most_to_one_rank > 0 && count > 0;
  return {place_of(address), count, significant ? layout_of(address, type) : nullptr};
}

}  // namespace

namespace arguments {

const char* neighbor_allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                               MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  const Neighbors* neighbors = neighbors_in(communicator);
  return prepare_neighbor_allgather(neighbors, request, for_all(neighbors, send, send_count, send_type),
                                    in_a_row(receive, count, type));
}

const char* neighbor_allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                                const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm,
                                const Communicator& communicator, Request& request) {
  const Neighbors* neighbors = neighbors_in(communicator);
  return prepare_neighbor_allgatherv(neighbors, request, for_all(neighbors, send, send_count, send_type),
                                     pieces_of(receive, counts, displacements, type));
}

const char* neighbor_alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                              MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_neighbor_alltoall(neighbors_in(communicator), request, in_a_row(send, send_count, send_type),
                                   in_a_row(receive, count, type));
}

const char* neighbor_alltoallv(const void* send, const int send_counts[], const int send_displacements[],
                               MPI_Datatype send_type, void* receive, const int counts[], const int displacements[],
                               MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_neighbor_alltoallv(neighbors_in(communicator), request,
                                    pieces_of(send, send_counts, send_displacements, send_type),
                                    pieces_of(receive, counts, displacements, type));
}

const char* neighbor_alltoallw(const void* send, const int send_counts[], const MPI_Aint send_displacements[],
                               const MPI_Datatype send_types[], void* receive, const int counts[],
                               const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Comm,
                               const Communicator& communicator, Request& request) {
  return prepare_neighbor_alltoallv(neighbors_in(communicator), request,
                                    pieces_of(send, send_counts, send_displacements, send_types),
                                    pieces_of(receive, counts, displacements, types));
}

}  // namespace arguments
}  // namespace plait::plugin
