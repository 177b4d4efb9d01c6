// The functions that libplait.so defines, each named once: the jumps (jumps.S), the table behind them (picker.cpp) and
// the implementations (entries.cpp) are made from these lists, in this order. Only macros stand here: the assembler
// reads it.
#pragma once

// X(Name, name, parameters, arguments): MPI_Name and PMPI_Name; `name` is its place in Host and in plait::door. Each
// collective has two more forms: MPI_Iname, and MPI_Name_init or, as an extension of MPI 3, MPIX_Name_init.
#define PLAIT_COLLECTIVES(X)                                                                                          \
  X(Barrier, barrier, (MPI_Comm comm), (comm))                                                                        \
  X(Bcast, bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),                              \
    (buffer, count, type, root, comm))                                                                                \
  X(Reduce, reduce,                                                                                                   \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),              \
    (send, receive, count, type, op, root, comm))                                                                     \
  X(Allreduce, allreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),  \
    (send, receive, count, type, op, comm))                                                                           \
  X(Allgather, allgather,                                                                                             \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,           \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, comm))                                                        \
  X(Allgatherv, allgatherv,                                                                                           \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],                     \
     const int displacements[], MPI_Datatype type, MPI_Comm comm),                                                    \
    (send, send_count, send_type, receive, counts, displacements, type, comm))                                        \
  X(Gather, gather,                                                                                                   \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root, \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, root, comm))                                                  \
  X(Scatter, scatter,                                                                                                 \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root, \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, root, comm))                                                  \
  X(Alltoall, alltoall,                                                                                               \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,           \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, comm))                                                        \
  X(Reduce_scatter_block, reduce_scatter_block,                                                                       \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                        \
    (send, receive, count, type, op, comm))                                                                           \
  X(Reduce_scatter, reduce_scatter,                                                                                   \
    (const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),               \
    (send, receive, counts, type, op, comm))

#define PLAIT_FRAME(X)                                                                \
  X(Init, init, (int* argc, char*** argv), (argc, argv))                              \
  X(Init_thread, init_thread, (int* argc, char*** argv, int required, int* provided), \
    (argc, argv, required, provided))                                                 \
  X(Finalize, finalize, (), ())

#define PLAIT_MEMORY(X)                                                                   \
  X(Alloc_mem, alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base)) \
  X(Free_mem, free_mem, (void* base), (base))

#define PLAIT_REQUESTS(X)                                                       \
  X(Start, start, (MPI_Request * request), (request))                           \
  X(Startall, startall, (int count, MPI_Request requests[]), (count, requests)) \
  X(Request_free, request_free, (MPI_Request * request), (request))             \
  X(Wait, wait, (MPI_Request * request, MPI_Status * status), (request, status))

#define PLAIT_INTERPOSED(X) PLAIT_FRAME(X) PLAIT_MEMORY(X) PLAIT_REQUESTS(X) PLAIT_COLLECTIVES(X)

// The other forms of the collectives have the same parameters and some more.
#define PLAIT_LISTED(...) __VA_ARGS__

// X(name): plait_name of plait/plait.h and plait/plait_mpi.h.
#define PLAIT_API_FUNCTIONS(X) \
  X(version)                   \
  X(set_enabled)               \
  X(last_plan)                 \
  X(last_channels)             \
  X(alloc)                     \
  X(free)                      \
  X(set_plan)                  \
  X(allreduce_axes)
