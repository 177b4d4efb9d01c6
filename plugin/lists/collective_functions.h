/* The collectives that the bindings take, as a list for C, C++ and the assembler: a binding defines, looks up or saves
 * one function for each. */
#ifndef PLAIT_PLUGIN_COLLECTIVE_FUNCTIONS_H
#define PLAIT_PLUGIN_COLLECTIVE_FUNCTIONS_H

/* Takes the brackets off a list of parameters or arguments: other forms of a collective have the same and some more. */
#define PLAIT_LIST(...) __VA_ARGS__

/* X(Name, name, parameters, arguments): MPI_Name and PMPI_Name; `name` is its Collective, its place in Host, in
 * plait::plugin::binding and in plait::plugin::arguments, which reads the arguments. Each has two more forms:
 * MPI_Iname, and MPI_Name_init or, as an extension of MPI 3, MPIX_Name_init. */
#define PLAIT_COLLECTIVES(X)                                                                                           \
  X(Barrier, barrier, (MPI_Comm comm), (comm))                                                                         \
  X(Bcast, bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),                               \
    (buffer, count, type, root, comm))                                                                                 \
  X(Reduce, reduce,                                                                                                    \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),               \
    (send, receive, count, type, op, root, comm))                                                                      \
  X(Allreduce, allreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),   \
    (send, receive, count, type, op, comm))                                                                            \
  X(Allgather, allgather,                                                                                              \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,            \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, comm))                                                         \
  X(Allgatherv, allgatherv,                                                                                            \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],                      \
     const int displacements[], MPI_Datatype type, MPI_Comm comm),                                                     \
    (send, send_count, send_type, receive, counts, displacements, type, comm))                                         \
  X(Gather, gather,                                                                                                    \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root,  \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, root, comm))                                                   \
  X(Scatter, scatter,                                                                                                  \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root,  \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, root, comm))                                                   \
  X(Alltoall, alltoall,                                                                                                \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,            \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, comm))                                                         \
  X(Reduce_scatter_block, reduce_scatter_block,                                                                        \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                         \
    (send, receive, count, type, op, comm))                                                                            \
  X(Reduce_scatter, reduce_scatter,                                                                                    \
    (const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),                \
    (send, receive, counts, type, op, comm))                                                                           \
  X(Alltoallv, alltoallv,                                                                                              \
    (const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type, void* receive, \
     const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm),                                 \
    (send, send_counts, send_displacements, send_type, receive, counts, displacements, type, comm))                    \
  X(Alltoallw, alltoallw,                                                                                              \
    (const void* send, const int send_counts[], const int send_displacements[], const MPI_Datatype send_types[],       \
     void* receive, const int counts[], const int displacements[], const MPI_Datatype types[], MPI_Comm comm),         \
    (send, send_counts, send_displacements, send_types, receive, counts, displacements, types, comm))                  \
  X(Gatherv, gatherv,                                                                                                  \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],                      \
     const int displacements[], MPI_Datatype type, int root, MPI_Comm comm),                                           \
    (send, send_count, send_type, receive, counts, displacements, type, root, comm))                                   \
  X(Scatterv, scatterv,                                                                                                \
    (const void* send, const int counts[], const int displacements[], MPI_Datatype send_type, void* receive,           \
     int count, MPI_Datatype type, int root, MPI_Comm comm),                                                           \
    (send, counts, displacements, send_type, receive, count, type, root, comm))                                        \
  X(Scan, scan, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),             \
    (send, receive, count, type, op, comm))                                                                            \
  X(Exscan, exscan, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),         \
    (send, receive, count, type, op, comm))                                                                            \
  X(Neighbor_allgather, neighbor_allgather,                                                                            \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,            \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, comm))                                                         \
  X(Neighbor_allgatherv, neighbor_allgatherv,                                                                          \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],                      \
     const int displacements[], MPI_Datatype type, MPI_Comm comm),                                                     \
    (send, send_count, send_type, receive, counts, displacements, type, comm))                                         \
  X(Neighbor_alltoall, neighbor_alltoall,                                                                              \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,            \
     MPI_Comm comm),                                                                                                   \
    (send, send_count, send_type, receive, count, type, comm))                                                         \
  X(Neighbor_alltoallv, neighbor_alltoallv,                                                                            \
    (const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type, void* receive, \
     const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm comm),                                 \
    (send, send_counts, send_displacements, send_type, receive, counts, displacements, type, comm))                    \
  X(Neighbor_alltoallw, neighbor_alltoallw,                                                                            \
    (const void* send, const int send_counts[], const MPI_Aint send_displacements[], const MPI_Datatype send_types[],  \
     void* receive, const int counts[], const MPI_Aint displacements[], const MPI_Datatype types[], MPI_Comm comm),    \
    (send, send_counts, send_displacements, send_types, receive, counts, displacements, types, comm))

/* X(Name, name, parameters, arguments), as above: what makes a communicator of some or all ranks of another one, whose
 * ranks all make the call and may block in it. */
#define PLAIT_COMMUNICATORS(X)                                                                                   \
  X(Comm_dup, comm_dup, (MPI_Comm comm, MPI_Comm * made), (comm, made))                                          \
  X(Comm_dup_with_info, comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * made), (comm, info, made)) \
  X(Comm_create, comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm * made), (comm, group, made))            \
  X(Comm_split, comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))       \
  X(Comm_split_type, comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),         \
    (comm, type, key, info, made))                                                                               \
  X(Cart_create, cart_create,                                                                                    \
    (MPI_Comm comm, int dimensions, const int lengths[], const int periods[], int reorder, MPI_Comm* made),      \
    (comm, dimensions, lengths, periods, reorder, made))                                                         \
  X(Cart_sub, cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm* made), (comm, remain, made))

#endif
