// The arguments of each collective as the program passed them, without the communicator: what they ask of Plait, and
// how the host gets them, in each of the three forms that MPI has of a collective.
#pragma once

#include <mpi.h>

#include <tuple>

#include "plugin/mpi/host/host.h"
#include "plugin/layer.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

// prepare() fills the request, whose call.collective and lists are set, touching only what is significant on this rank.
// It returns nullptr, or why the call is not eligible: the same on all ranks, unless a rank's arguments are wrong.
// The functions on_host() are the call as the program made it, blocking and non-blocking.

struct BarrierCall {
  static constexpr Collective collective = Collective::barrier;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().barrier(comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const { return host().ibarrier(comm, request); }
};

struct BcastCall {
  void* buffer;
  int count;
  MPI_Datatype type;
  int root;

  static constexpr Collective collective = Collective::bcast;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().bcast(buffer, count, type, root, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ibcast(buffer, count, type, root, comm, request);
  }
};

struct ReduceCall {
  const void* send;
  void* receive;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root;

  static constexpr Collective collective = Collective::reduce;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().reduce(send, receive, count, type, op, root, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ireduce(send, receive, count, type, op, root, comm, request);
  }
};

struct AllreduceCall {
  const void* send;
  void* receive;
  int count;
  MPI_Datatype type;
  MPI_Op op;

  static constexpr Collective collective = Collective::allreduce;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().allreduce(send, receive, count, type, op, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iallreduce(send, receive, count, type, op, comm, request);
  }
};

struct AllgatherCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  int count;
  MPI_Datatype type;

  static constexpr Collective collective = Collective::allgather;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().allgather(send, send_count, send_type, receive, count, type, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iallgather(send, send_count, send_type, receive, count, type, comm, request);
  }
};

struct AllgathervCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;

  static constexpr Collective collective = Collective::allgatherv;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().allgatherv(send, send_count, send_type, receive, counts, displacements, type, comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iallgatherv(send, send_count, send_type, receive, counts, displacements, type, comm, request);
  }
};

struct GatherCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  int count;
  MPI_Datatype type;
  int root;

  static constexpr Collective collective = Collective::gather;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().gather(send, send_count, send_type, receive, count, type, root, comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().igather(send, send_count, send_type, receive, count, type, root, comm, request);
  }
};

struct ScatterCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  int count;
  MPI_Datatype type;
  int root;

  static constexpr Collective collective = Collective::scatter;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().scatter(send, send_count, send_type, receive, count, type, root, comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iscatter(send, send_count, send_type, receive, count, type, root, comm, request);
  }
};

struct AlltoallCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  int count;
  MPI_Datatype type;

  static constexpr Collective collective = Collective::alltoall;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().alltoall(send, send_count, send_type, receive, count, type, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ialltoall(send, send_count, send_type, receive, count, type, comm, request);
  }
};

struct ReduceScatterBlockCall {
  const void* send;
  void* receive;
  int count;
  MPI_Datatype type;
  MPI_Op op;

  static constexpr Collective collective = Collective::reduce_scatter_block;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().reduce_scatter_block(send, receive, count, type, op, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ireduce_scatter_block(send, receive, count, type, op, comm, request);
  }
};

struct ReduceScatterCall {
  const void* send;
  void* receive;
  const int* counts;
  MPI_Datatype type;
  MPI_Op op;

  static constexpr Collective collective = Collective::reduce_scatter;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().reduce_scatter(send, receive, counts, type, op, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ireduce_scatter(send, receive, counts, type, op, comm, request);
  }
};

struct AlltoallvCall {
  const void* send;
  const int* send_counts;
  const int* send_displacements;
  MPI_Datatype send_type;
  void* receive;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;

  static constexpr Collective collective = Collective::alltoallv;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().alltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements, type,
                            comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ialltoallv(send, send_counts, send_displacements, send_type, receive, counts, displacements, type,
                             comm, request);
  }
};

struct AlltoallwCall {
  const void* send;
  const int* send_counts;
  const int* send_displacements;
  const MPI_Datatype* send_types;
  void* receive;
  const int* counts;
  const int* displacements;
  const MPI_Datatype* types;

  static constexpr Collective collective = Collective::alltoallw;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().alltoallw(send, send_counts, send_displacements, send_types, receive, counts, displacements, types,
                            comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().ialltoallw(send, send_counts, send_displacements, send_types, receive, counts, displacements, types,
                             comm, request);
  }
};

struct GathervCall {
  const void* send;
  int send_count;
  MPI_Datatype send_type;
  void* receive;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;
  int root;

  static constexpr Collective collective = Collective::gatherv;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().gatherv(send, send_count, send_type, receive, counts, displacements, type, root, comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().igatherv(send, send_count, send_type, receive, counts, displacements, type, root, comm, request);
  }
};

struct ScattervCall {
  const void* send;
  const int* counts;
  const int* displacements;
  MPI_Datatype send_type;
  void* receive;
  int count;
  MPI_Datatype type;
  int root;

  static constexpr Collective collective = Collective::scatterv;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const {
    return host().scatterv(send, counts, displacements, send_type, receive, count, type, root, comm);
  }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iscatterv(send, counts, displacements, send_type, receive, count, type, root, comm, request);
  }
};

struct ScanCall {
  const void* send;
  void* receive;
  int count;
  MPI_Datatype type;
  MPI_Op op;

  static constexpr Collective collective = Collective::scan;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().scan(send, receive, count, type, op, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iscan(send, receive, count, type, op, comm, request);
  }
};

struct ExscanCall {
  const void* send;
  void* receive;
  int count;
  MPI_Datatype type;
  MPI_Op op;

  static constexpr Collective collective = Collective::exscan;
  const char* prepare(const Communicator& communicator, Request& request) const;
  int on_host(MPI_Comm comm) const { return host().exscan(send, receive, count, type, op, comm); }
  int on_host(MPI_Comm comm, MPI_Request* request) const {
    return host().iexscan(send, receive, count, type, op, comm, request);
  }
};

// Each of them once.
using AllArguments = std::tuple<BarrierCall, BcastCall, ReduceCall, AllreduceCall, AllgatherCall, AllgathervCall,
                                GatherCall, ScatterCall, AlltoallCall, ReduceScatterBlockCall, ReduceScatterCall,
                                AlltoallvCall, AlltoallwCall, GathervCall, ScattervCall, ScanCall, ExscanCall>;

}  // namespace plait::plugin
