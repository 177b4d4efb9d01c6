#include "plugin/mpi/call/collectives.h"

#include "plugin/mpi/call/arguments.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/enter_nonblocking.h"
#include "plugin/mpi/request/nonblocking.h"
#include "runtime/execution/request.h"

namespace plait::plugin::binding {

int barrier(MPI_Comm comm) { return enter(BarrierCall{}, comm); }

int ibarrier(MPI_Comm comm, MPI_Request* request) { return post(BarrierCall{}, comm, request); }

int bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return enter(BcastCall{buffer, count, type, root}, comm);
}

int ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return post(BcastCall{buffer, count, type, root}, comm, request);
}

int reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return enter(ReduceCall{send, receive, count, type, op, root}, comm);
}

int ireduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
            MPI_Request* request) {
  return post(ReduceCall{send, receive, count, type, op, root}, comm, request);
}

int allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(AllreduceCall{send, receive, count, type, op}, comm);
}

int iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
               MPI_Request* request) {
  return post(AllreduceCall{send, receive, count, type, op}, comm, request);
}

int allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
              MPI_Comm comm) {
  return enter(AllgatherCall{send, send_count, send_type, receive, count, type}, comm);
}

int iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
               MPI_Comm comm, MPI_Request* request) {
  return post(AllgatherCall{send, send_count, send_type, receive, count, type}, comm, request);
}

int allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
               const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  return enter(AllgathervCall{send, send_count, send_type, receive, counts, displacements, type}, comm);
}

int iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
                const int* displacements, MPI_Datatype type, MPI_Comm comm, MPI_Request* request) {
  return post(AllgathervCall{send, send_count, send_type, receive, counts, displacements, type}, comm, request);
}

int gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
           int root, MPI_Comm comm) {
  return enter(GatherCall{send, send_count, send_type, receive, count, type, root}, comm);
}

int igather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
            int root, MPI_Comm comm, MPI_Request* request) {
  return post(GatherCall{send, send_count, send_type, receive, count, type, root}, comm, request);
}

int scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
            int root, MPI_Comm comm) {
  return enter(ScatterCall{send, send_count, send_type, receive, count, type, root}, comm);
}

int iscatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
             int root, MPI_Comm comm, MPI_Request* request) {
  return post(ScatterCall{send, send_count, send_type, receive, count, type, root}, comm, request);
}

int alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
             MPI_Comm comm) {
  return enter(AlltoallCall{send, send_count, send_type, receive, count, type}, comm);
}

int ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,
              MPI_Comm comm, MPI_Request* request) {
  return post(AlltoallCall{send, send_count, send_type, receive, count, type}, comm, request);
}

int reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(ReduceScatterBlockCall{send, receive, count, type, op}, comm);
}

int ireduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
  return post(ReduceScatterBlockCall{send, receive, count, type, op}, comm, request);
}

int reduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(ReduceScatterCall{send, receive, counts, type, op}, comm);
}

int ireduce_scatter(const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request) {
  return post(ReduceScatterCall{send, receive, counts, type, op}, comm, request);
}

int alltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
              void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm) {
  return enter(AlltoallvCall{send, send_counts, send_displacements, send_type, receive, counts, displacements, type},
               comm);
}

int ialltoallv(const void* send, const int* send_counts, const int* send_displacements, MPI_Datatype send_type,
               void* receive, const int* counts, const int* displacements, MPI_Datatype type, MPI_Comm comm,
               MPI_Request* request) {
  return post(AlltoallvCall{send, send_counts, send_displacements, send_type, receive, counts, displacements, type},
              comm, request);
}

int alltoallw(const void* send, const int* send_counts, const int* send_displacements, const MPI_Datatype* send_types,
              void* receive, const int* counts, const int* displacements, const MPI_Datatype* types, MPI_Comm comm) {
  return enter(AlltoallwCall{send, send_counts, send_displacements, send_types, receive, counts, displacements, types},
               comm);
}

int ialltoallw(const void* send, const int* send_counts, const int* send_displacements, const MPI_Datatype* send_types,
               void* receive, const int* counts, const int* displacements, const MPI_Datatype* types, MPI_Comm comm,
               MPI_Request* request) {
  return post(AlltoallwCall{send, send_counts, send_displacements, send_types, receive, counts, displacements, types},
              comm, request);
}

int gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
            const int* displacements, MPI_Datatype type, int root, MPI_Comm comm) {
  return enter(GathervCall{send, send_count, send_type, receive, counts, displacements, type, root}, comm);
}

int igatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts,
             const int* displacements, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return post(GathervCall{send, send_count, send_type, receive, counts, displacements, type, root}, comm, request);
}

int scatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
             int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return enter(ScattervCall{send, counts, displacements, send_type, receive, count, type, root}, comm);
}

int iscatterv(const void* send, const int* counts, const int* displacements, MPI_Datatype send_type, void* receive,
              int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return post(ScattervCall{send, counts, displacements, send_type, receive, count, type, root}, comm, request);
}

int scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(ScanCall{send, receive, count, type, op}, comm);
}

int iscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
          MPI_Request* request) {
  return post(ScanCall{send, receive, count, type, op}, comm, request);
}

int exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return enter(ExscanCall{send, receive, count, type, op}, comm);
}

int iexscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
            MPI_Request* request) {
  return post(ExscanCall{send, receive, count, type, op}, comm, request);
}

}  // namespace plait::plugin::binding
