/* Plait's public C API for MPI programs: what a program may ask for its communicators. The functions are in
 * libplait.so: link with it before the MPI library, or look them up with dlsym() in a job that preloads it. */
#ifndef PLAIT_PLAIT_MPI_H
#define PLAIT_PLAIT_MPI_H

#include <mpi.h>
#include <stdint.h>

#include "plait/plait.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the collectives of `comm` to which `plan` applies by that plan: "RS.2(ring) AR.1(ring) AG.2(ring) x4", the same
 * without algorithms or chunks ("RS.2 AR.1 AG.2": Plait chooses those), or the name of a plan file. Levels are numbered
 * from 1, outermost first. NULL or "" lets Plait choose again, even where PLAIT_PLAN is set. All other communicators,
 * those made from `comm` too, are left as they are.
 *
 * Collective over `comm`; blocks; all ranks give the same plan. The first call on a communicator connects its ranks, so
 * that the next collective is accelerated already. Threads may call it for different communicators at once.
 *
 * Returns MPI_SUCCESS, or MPI_ERR_ARG on all ranks when no collective of `comm` can use the plan or the ranks do not
 * give the same one; one rank prints why, the communicator's error handler is not called, and what held before holds
 * on. Other errors (MPI_ERR_COMM for no communicator) are raised as MPI's are. */
PLAIT_API int plait_set_plan(MPI_Comm comm, const char* plan);

/* What may carry the data of `comm`: a list as PLAIT_CHANNELS takes it, "shm,ucx" say, instead of that variable's. NULL
 * or "" is that variable's. For communicators that are not connected yet: call it before their first collective (with
 * PLAIT_SETUP_CALLS=0 they are connected where they are made). All
 * other communicators are left as they are, and no trial chooses plans on this one.
 *
 * Collective over `comm`; blocks; all ranks give the same list. Returns MPI_SUCCESS, also where Plait does not run; or
 * MPI_ERR_ARG on all ranks where some rank's list names no channels or differs, or `comm` is connected already: one
 * rank prints why, the communicator's error handler is not called, and nothing changes. */
PLAIT_API int plait_set_channels(MPI_Comm comm, const char* channels);

/* One reduction over one or several axes of a process grid at once. The ranks of `comm` form a grid of dims[0] x ... x
 * dims[ndims-1], row-major, the last dimension fastest, as MPI_Cart_create numbers them. Every rank gets the reduction
 * over the `naxes` dimensions in `axes` (indices into `dims`, in any order): of the ranks that share its coordinates on
 * all other dimensions, in the order of their ranks. The other arguments are MPI_Allreduce's, MPI_IN_PLACE too. naxes 0
 * reduces nothing: a copy.
 *
 * Collective over `comm`; blocks; all ranks give the same dims and axes. Threads may call it for different
 * communicators at once, for one communicator one after the other in the same order on all ranks. The first call for a
 * set of axes makes a communicator of each group of ranks; it is freed with `comm`, or at MPI_Finalize. A program with
 * many small grids on one communicator should know that these stay until then.
 *
 * Errors go through the communicator's error handler and are returned, as MPI's are: MPI_ERR_COMM for no communicator
 * or an inter-communicator; MPI_ERR_DIMS when ndims < 1, a dimension is < 1, or their product is not the size of
 * `comm`; MPI_ERR_ARG when naxes < 0, an axis does not exist or is named twice, or a list is missing; else what
 * MPI_Allreduce says. Nothing has been communicated then. */
PLAIT_API int plait_allreduce_axes(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                                   MPI_Comm comm, int ndims, const int dims[], int naxes, const int axes[]);

/* ---- Cross-mesh resharding: a tensor that is sharded over one mesh of ranks goes to another mesh, under another
 * layout.
 *
 * A mesh is a grid of ranks, row-major, the last dimension fastest. A sharding spec has an entry for each dimension of
 * the tensor: R (replicated), or S with the mesh dimensions over which it is split, one digit each, the first the most
 * significant: "S0R", "S01R", "RS1R". A dimension of n elements in p parts has parts of ceil(n / p) elements, of which
 * the last may be shorter or empty. A rank's buffer is its part of the tensor, dense and row-major, nothing padded.
 * Ranks that the spec does not tell apart hold the same data. The meshes may overlap: such a rank has both buffers,
 * which must not overlap each other. docs/reshard.md has examples. C++: plait/reshard.hpp; Fortran:
 * plait/plait_reshard.f90. */
typedef struct plait_reshard_plan* plait_reshard;
#define PLAIT_RESHARD_NULL ((plait_reshard)0)
enum { PLAIT_RESHARD_SOURCE = 0, PLAIT_RESHARD_DESTINATION = 1 };

/* Makes a plan that can be executed any number of times.
 *
 *   src_ndims, src_dims   the source mesh's dimensions, 1 to 8 of them
 *   src_ranks             its ranks in `comm`, row-major; NULL: 0, 1, ..
 *   src_spec              how the tensor lies on it
 *   dst_..                the same of the destination mesh; dst_ranks NULL: 0, 1, .. as well
 *   ndims, shape          the tensor's dimensions, 1 to 8 of them, in elements, positive
 *   element               its element type, without gaps
 *   options               NULL, or words such as "strategy=send-recv scheduler=naive seed=1 chunks=16": strategy is
 *                         broadcast (default), send-recv, local-allgather or global-allgather; scheduler is search
 *                         (default), load-balance or naive; chunks 0 leaves their number to the cost model
 *
 * Collective over `comm`, of which every rank gives the same arguments; blocks. Ranks outside both meshes take part in
 * this call, and theirs of the others do nothing. Connects the ranks of the two meshes anew, which takes some
 * milliseconds; the plan needs `comm` no more, but to raise errors on it. Threads may make plans at once on different
 * communicators.
 *
 * Errors go through the communicator's error handler and are returned, the same on all ranks: MPI_ERR_COMM for no
 * communicator or an inter-communicator, else a code whose text (MPI_Error_string) names the argument: src_mesh,
 * src_spec, dst_mesh, dst_spec, shape, element, options or plan, and where it is another rank's, that rank. No data of
 * the program has been sent then, and *plan is PLAIT_RESHARD_NULL. */
PLAIT_API int plait_reshard_create(MPI_Comm comm, int src_ndims, const int src_dims[], const int src_ranks[],
                                   const char* src_spec, int dst_ndims, const int dst_dims[], const int dst_ranks[],
                                   const char* dst_spec, int ndims, const int64_t shape[], MPI_Datatype element,
                                   const char* options, plait_reshard* plan);

/* This rank's part of the tensor on one side (PLAIT_RESHARD_SOURCE or _DESTINATION): where it begins and how long it is
 * in each of the tensor's dimensions, in elements; lengths are 0 where the rank has none. Either list may be NULL.
 * Local. MPI_ERR_ARG for no plan or another side. */
PLAIT_API int plait_reshard_local(plait_reshard plan, int side, int64_t offset[], int64_t length[]);

/* What was planned, as JSON: strategy, scheduler, unit tasks, predicted seconds, lower bound. "{}" on ranks outside
 * both meshes. The string lives as long as the plan. Local. */
PLAIT_API const char* plait_reshard_describe(plait_reshard plan);

/* Moves the tensor from `source`, this rank's part in the source mesh, to `destination`. A rank without one may pass
 * NULL for it. Collective over the ranks of the two meshes; blocks until this rank's part is done: the source may be
 * changed and the destination is complete. Waits for what this plan has under way. Allocates nothing. Errors are raised
 * and returned as MPI's are; after a failed transfer the plan can only be freed. */
PLAIT_API int plait_reshard_execute(plait_reshard plan, const void* source, void* destination);

/* The same without blocking. The request is MPI's: complete it by MPI_Wait, MPI_Test and the like; until then leave
 * both buffers alone. Several executions of one plan may be under way; they run one after the other, and every rank
 * starts them in the same order. Those of different plans run side by side, in whatever order each rank starts them.
 * Progress is made while the program is in MPI, or by a thread with PLAIT_PROGRESS=thread. */
PLAIT_API int plait_reshard_start(plait_reshard plan, const void* source, void* destination, MPI_Request* request);

/* Frees the plan and sets it to PLAIT_RESHARD_NULL. Waits for what it has under way. Collective over the ranks of the
 * two meshes, in the same order as for other plans; before MPI_Finalize, which else does it. */
PLAIT_API int plait_reshard_free(plait_reshard* plan);

/* For plait_reshard.f90: the same with Fortran's handles. */
PLAIT_API int plait_reshard_create_f(MPI_Fint comm, int src_ndims, const int src_dims[], const int src_ranks[],
                                     const char* src_spec, int dst_ndims, const int dst_dims[], const int dst_ranks[],
                                     const char* dst_spec, int ndims, const int64_t shape[], MPI_Fint element,
                                     const char* options, plait_reshard* plan);
PLAIT_API int plait_reshard_start_f(plait_reshard plan, const void* source, void* destination, MPI_Fint* request);

#ifdef __cplusplus
}
#endif

#endif
