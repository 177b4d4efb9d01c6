// The accelerated collectives, with MPI's own signatures. Each turns its arguments into a Request, or hands the call to
// the host as it came. What the other ranks' doors decide is decided here from the same facts (design rule 1).
#pragma once

#include <mpi.h>

namespace plait::door {

int barrier(MPI_Comm comm);
int bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
              MPI_Datatype receive_type, MPI_Comm comm);
int allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int receive_counts[],
               const int displacements[], MPI_Datatype receive_type, MPI_Comm comm);
int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
           MPI_Datatype receive_type, int root, MPI_Comm comm);
int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
            MPI_Datatype receive_type, int root, MPI_Comm comm);
int alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int receive_count,
             MPI_Datatype receive_type, MPI_Comm comm);
int reduce_scatter_block(const void* send, void* receive, int receive_count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm);
int reduce_scatter(const void* send, void* receive, const int receive_counts[], MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm);

}  // namespace plait::door
