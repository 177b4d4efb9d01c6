/* Plait's public C API for MPI programs: what a program may ask for its communicators. The functions are in
 * libplait.so: link with it before the MPI library, or look them up with dlsym() in a job that preloads it. */
#ifndef PLAIT_PLAIT_MPI_H
#define PLAIT_PLAIT_MPI_H

#include <mpi.h>

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
 * or "" is that variable's. For communicators that are not connected yet: call it before their first collective. All
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

#ifdef __cplusplus
}
#endif

#endif
