// The accelerated collectives blocking and non-blocking, with MPI's own signatures. Each turns its arguments into a
// Request, or hands the call to the host as it came. What the other ranks' bindings decide is decided here from the
// same facts (design rule 1).
#pragma once

#include <mpi.h>

namespace plait::plugin::binding {

int barrier(MPI_Comm comm);
int ibarrier(MPI_Comm comm, MPI_Request* request);

int bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);

int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
            MPI_Request* request);

int allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
               MPI_Request* request);

int allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
              MPI_Comm comm);
int iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
               MPI_Comm comm, MPI_Request* request);

int allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
               const int* displacements, MPI_Datatype type, MPI_Comm comm);
int iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                const int* displacements, MPI_Datatype type, MPI_Comm comm, MPI_Request* request);

int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
           int root, MPI_Comm comm);
int igather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
            int root, MPI_Comm comm, MPI_Request* request);

int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
            int root, MPI_Comm comm);
int iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
             int root, MPI_Comm comm, MPI_Request* request);

int alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
             MPI_Comm comm);
int ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
              MPI_Comm comm, MPI_Request* request);

int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request);

int reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int ireduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request);

int alltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
              void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm);
int ialltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
               void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm,
               MPI_Request* request);

int alltoallw(const void* send, const int* send_counts, const int* send_displacements, const MPI_Datatype* send_types,
              void* receive, const int* counts, const int* displacements, const MPI_Datatype* types, MPI_Comm comm);
int ialltoallw(const void* send, const int* send_counts, const int* send_displacements, const MPI_Datatype* send_types,
               void* receive, const int* counts, const int* displacements, const MPI_Datatype* types, MPI_Comm comm,
               MPI_Request* request);

int gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
            const int* displacements, MPI_Datatype type, int root, MPI_Comm comm);
int igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
             const int* displacements, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);

int scatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
             int count, MPI_Datatype type, int root, MPI_Comm comm);
int iscatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
              int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);

int scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
          MPI_Request* request);

int exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
            MPI_Request* request);

}  // namespace plait::plugin::binding
