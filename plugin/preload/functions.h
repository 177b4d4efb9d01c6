// The functions that libplait.so defines, each named once: the jumps (jumps.S), the table behind them (picker.cpp) and
// the implementations (entries.cpp) are made from these lists, in this order. Only macros stand here: the assembler
// reads it.
#pragma once

#include "plugin/lists/collective_functions.h"

// X(Name, name, parameters, arguments), as in PLAIT_COLLECTIVES.
#define PLAIT_FRAME(X)                                                                \
  X(Init, init, (int* argc, char*** argv), (argc, argv))                              \
  X(Init_thread, init_thread, (int* argc, char*** argv, int required, int* provided), \
    (argc, argv, required, provided))                                                 \
  X(Finalize, finalize, (), ())

#define PLAIT_MEMORY(X)                                                                   \
  X(Alloc_mem, alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base)) \
  X(Free_mem, free_mem, (void* base), (base))

#define PLAIT_REQUESTS(X)                                                                                          \
  X(Start, start, (MPI_Request * request), (request))                                                              \
  X(Startall, startall, (int count, MPI_Request requests[]), (count, requests))                                    \
  X(Request_free, request_free, (MPI_Request * request), (request))                                                \
  X(Wait, wait, (MPI_Request * request, MPI_Status * status), (request, status))                                   \
  X(Waitall, waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses))     \
  X(Waitany, waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),                         \
    (count, requests, index, status))                                                                              \
  X(Waitsome, waitsome, (int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]), \
    (count, requests, completed, indices, statuses))                                                               \
  X(Test, test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))                   \
  X(Testall, testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]),                       \
    (count, requests, flag, statuses))                                                                             \
  X(Testany, testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status),              \
    (count, requests, index, flag, status))                                                                        \
  X(Testsome, testsome, (int count, MPI_Request requests[], int* completed, int indices[], MPI_Status statuses[]), \
    (count, requests, completed, indices, statuses))

#define PLAIT_INTERPOSED(X) PLAIT_FRAME(X) PLAIT_MEMORY(X) PLAIT_REQUESTS(X) PLAIT_COMMUNICATORS(X) PLAIT_COLLECTIVES(X)

// X(name): plait_name of plait/plait.h and plait/plait_mpi.h.
#define PLAIT_API_FUNCTIONS(X)        \
  X(version)                          \
  X(set_enabled)                      \
  X(last_plan)                        \
  X(last_channels)                    \
  X(trial_calls)                      \
  X(alloc)                            \
  X(free)                             \
  X(set_progress_duty)                \
  X(set_progress_threads)             \
  X(step)                             \
  X(set_plan)                         \
  X(set_channels)                     \
  X(allreduce_axes)                   \
  X(reshard_create)                   \
  X(reshard_create_f)                 \
  X(reshard_local)                    \
  X(reshard_describe)                 \
  X(reshard_execute)                  \
  X(reshard_start)                    \
  X(reshard_start_f)                  \
  X(reshard_free)                     \
  X(fused_embedding_create)           \
  X(fused_embedding_start)            \
  X(fused_embedding_run)              \
  X(fused_embedding_back_create)      \
  X(fused_embedding_back_start)       \
  X(fused_embedding_back_run)         \
  X(fused_gemv_create)                \
  X(fused_gemv_start)                 \
  X(fused_gemv_run)                   \
  X(fused_gemm_reduce_scatter_create) \
  X(fused_gemm_reduce_scatter_start)  \
  X(fused_gemm_reduce_scatter_run)    \
  X(fused_all_gather_gemm_create)     \
  X(fused_all_gather_gemm_start)      \
  X(fused_all_gather_gemm_run)        \
  X(fused_moe_dispatch_create)        \
  X(fused_moe_dispatch_start)         \
  X(fused_moe_dispatch_run)           \
  X(fused_moe_combine_create)         \
  X(fused_moe_combine_start)          \
  X(fused_moe_combine_run)            \
  X(fused_wait)                       \
  X(fused_describe)                   \
  X(fused_free)
