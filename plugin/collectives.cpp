#include "plugin/collectives.h"

#include "plugin/arguments.h"
#include "plugin/nonblocking.h"
#include "plugin/request.h"

namespace plait::door {

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

}  // namespace plait::door
