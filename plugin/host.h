// The MPI underneath, as the door reaches it. Its collectives, its memory and its start and end are reached only
// through this table: by name they would come back to us, because the preload door defines both their MPI_ and their
// PMPI_ names. Every other function of MPI is called by its PMPI_ name.
#pragma once

#include <mpi.h>

namespace plait {

struct Operation;  // operation.h

struct Host {
  decltype(&MPI_Init) init = nullptr;
  decltype(&MPI_Init_thread) init_thread = nullptr;
  decltype(&MPI_Finalize) finalize = nullptr;
  decltype(&MPI_Alloc_mem) alloc_mem = nullptr;
  decltype(&MPI_Free_mem) free_mem = nullptr;
  decltype(&MPI_Barrier) barrier = nullptr;
  decltype(&MPI_Bcast) bcast = nullptr;
  decltype(&MPI_Reduce) reduce = nullptr;
  decltype(&MPI_Allreduce) allreduce = nullptr;
  decltype(&MPI_Allgather) allgather = nullptr;
  decltype(&MPI_Allgatherv) allgatherv = nullptr;
  decltype(&MPI_Gather) gather = nullptr;
  decltype(&MPI_Scatter) scatter = nullptr;
  decltype(&MPI_Alltoall) alltoall = nullptr;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block = nullptr;
  decltype(&MPI_Reduce_scatter) reduce_scatter = nullptr;
  // The non-blocking forms.
  decltype(&MPI_Ibarrier) ibarrier = nullptr;
  decltype(&MPI_Ibcast) ibcast = nullptr;
  decltype(&MPI_Ireduce) ireduce = nullptr;
  decltype(&MPI_Iallreduce) iallreduce = nullptr;
  decltype(&MPI_Iallgather) iallgather = nullptr;
  decltype(&MPI_Iallgatherv) iallgatherv = nullptr;
  decltype(&MPI_Igather) igather = nullptr;
  decltype(&MPI_Iscatter) iscatter = nullptr;
  decltype(&MPI_Ialltoall) ialltoall = nullptr;
  decltype(&MPI_Ireduce_scatter_block) ireduce_scatter_block = nullptr;
  decltype(&MPI_Ireduce_scatter) ireduce_scatter = nullptr;
  decltype(&MPI_Wait) wait = nullptr;
  // The request that the program gets for an operation: made and put into its `handle`, and told of the operation's end
  // and `error`, after which the operation may be gone. nullptr: generalized requests.
  int (*start_request)(Operation& operation) = nullptr;
  void (*complete_request)(Operation& operation) = nullptr;
  bool raises_errors = false;  // the host raises what a collective of plait::door returns; else the door does
};

namespace detail {
extern constinit Host host;
}

// Precondition: the door has filled the table. It does so once, before its first call into the rest of plugin/.
inline const Host& host() { return detail::host; }
void install_host(const Host& host);

}  // namespace plait
