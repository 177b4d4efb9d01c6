#include "plugin/mpi/call/arguments.h"

#include "plugin/layer.h"
#include "plugin/mpi/call/mpi_arguments.h"
#include "plugin/mpi/communicator/call_space.h"
#include "plugin/mpi/types/predefined_types.h"
#include "plugin/mpi/types/types.h"
#include "runtime/arguments/moved_data.h"
#include "runtime/arguments/pieces.h"
#include "runtime/arguments/reductions.h"

namespace plait::plugin {
namespace {

// Types and operators are found for the length of the call.

Elements input_of(Request& request, const void* address, int count, MPI_Datatype type) {
  if (address == MPI_IN_PLACE) return {in_place(), count};
  return {address, count, find_datatype(type, space_of(request).input_type)};
}

Elements output_of(Request& request, const void* address, int count, MPI_Datatype type) {
  if (address == MPI_IN_PLACE) return {in_place(), count};
  return {address, count, find_datatype(type, space_of(request).output_type)};
}

Operands operands_of(Request& request, const void* send, void* receive, MPI_Datatype type, MPI_Op op) {
  return {place_of(send), place_of(receive), find_datatype(type), find_operator(op, space_of(request).op)};
}

}  // namespace

namespace arguments {

const char* barrier(MPI_Comm, const Communicator&, Request&) { return eligible; }

const char* bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                  Request& request) {
  return prepare_bcast(communicator, request, place_of(buffer), count,
                       find_datatype(type, space_of(request).input_type), root);
}

const char* reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm,
                   const Communicator& communicator, Request& request) {
  return prepare_reduce(communicator, request, operands_of(request, send, receive, type, op), count, root);
}

const char* allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                      const Communicator&, Request& request) {
  const Datatype* facts = find_datatype(type);
  return prepare_allreduce(request, place_of(send), place_of(receive), count, facts,
                           find_operator(op, space_of(request).op));
}

const char* allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                      MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_allgather(communicator, request, input_of(request, send, send_count, send_type),
                           output_of(request, receive, count, type));
}

const char* allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],
                       const int displacements[], MPI_Datatype type, MPI_Comm, const Communicator& communicator,
                       Request& request) {
  return prepare_allgatherv(communicator, request, input_of(request, send, send_count, send_type),
                            {place_of(receive), counts, displacements, layout_of(receive, type)});
}

const char* gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                   MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator, Request& request) {
  const bool at_root = communicator.rank == root;
  return prepare_gather(communicator, request, input_of(request, send, send_count, send_type),
                        at_root ? output_of(request, receive, count, type) : Elements{}, root);
}

const char* scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                    MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator, Request& request) {
  const bool at_root = communicator.rank == root;
  return prepare_scatter(communicator, request, at_root ? input_of(request, send, send_count, send_type) : Elements{},
                         output_of(request, receive, count, type), root);
}

const char* alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                     MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_alltoall(communicator, request, input_of(request, send, send_count, send_type),
                          output_of(request, receive, count, type));
}

const char* reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                                 const Communicator& communicator, Request& request) {
  return prepare_reduce_scatter_block(communicator, request, operands_of(request, send, receive, type, op), count);
}

const char* reduce_scatter(const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm,
                           const Communicator& communicator, Request& request) {
  return prepare_reduce_scatter(communicator, request, operands_of(request, send, receive, type, op), counts);
}

const char* alltoallv(const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                      void* receive, const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm,
                      const Communicator& communicator, Request& request) {
  return prepare_exchange(communicator, request, pieces_of(send, send_counts, send_displacements, send_type),
                          pieces_of(receive, counts, displacements, type));
}

const char* alltoallw(const void* send, const int send_counts[], const int send_displacements[],
                      const MPI_Datatype send_types[], void* receive, const int counts[], const int displacements[],
                      const MPI_Datatype types[], MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_exchange(communicator, request, pieces_of(send, send_counts, send_displacements, send_types),
                          pieces_of(receive, counts, displacements, types));
}

const char* gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],
                    const int displacements[], MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                    Request& request) {
  return prepare_gatherv(communicator, request, root, own_of(send, send_count, send_type),
                         communicator.rank == root ? pieces_of(receive, counts, displacements, type) : Pieces{});
}

const char* scatterv(const void* send, const int counts[], const int displacements[], MPI_Datatype send_type,
                     void* receive, int count, MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                     Request& request) {
  return prepare_scatterv(communicator, request, root,
                          communicator.rank == root ? pieces_of(send, counts, displacements, send_type) : Pieces{},
                          own_of(receive, count, type));
}

const char* scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                 const Communicator& communicator, Request& request) {
  return prepare_scan(communicator, request, operands_of(request, send, receive, type, op), count, Prefix::inclusive);
}

const char* exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                   const Communicator& communicator, Request& request) {
  return prepare_scan(communicator, request, operands_of(request, send, receive, type, op), count, Prefix::exclusive);
}

}  // namespace arguments
}  // namespace plait::plugin
