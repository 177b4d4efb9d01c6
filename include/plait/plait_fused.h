/* Plait's fused operators: a computation and the collective that follows it in one, so that each part of the result
 * leaves for its rank as soon as it is ready, while the rest is computed. The functions are in libplait.so: link with
 * it before the MPI library, or look them up with dlsym() in a job that preloads it.
 *
 * A plan is made once, by all ranks of a communicator together; then it is run as often as needed: start and wait, or
 * run, which is both. Runs of a plan follow each other, in the same order on all ranks; one is under way at a time. All
 * ranks take part in each run. Plans are for one thread at a time; threads may have different ones. Runs allocate
 * nothing. A run waits for all ranks to have started it before it writes into an output, and else for what it needs.
 *
 * A plan's wait moves that plan on, and no other: where several plans are under way at once, all ranks wait for them in
 * the same order, and where a rank does something else of all ranks between a start and its wait (a collective, a
 * message that another sends after its wait), so do all. The communicator outlives its plans.
 *
 * What a plan is made of and what its runs are given may be memory of a GPU, each pointer for itself and on each rank
 * as it likes (docs/fused.md). Lists of pointers and of sizes are the processor's. Where the processor computes, such
 * data are copied, and start blocks for that. A copy to a GPU at the end of a run that fails is an error of that rank
 * alone: its output is not complete, the others' are; the next run fails on all ranks.
 *
 * Errors go through the communicator's error handler and are returned, as MPI's are: MPI_ERR_COMM for no communicator
 * or an inter-communicator, else a code whose text (MPI_Error_string) names the argument, and the rank where it is
 * another's. */
#ifndef PLAIT_PLAIT_FUSED_H
#define PLAIT_PLAIT_FUSED_H

#include <mpi.h>
#include <stdint.h>

#include "plait/plait.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_fused_plan* plait_fused;
#define PLAIT_FUSED_NULL ((plait_fused)0)

/* What the rows of tables and weights are made of. BF16: the upper half of an F32. I8: signed bytes, with a factor a
 * row. */
enum { PLAIT_FUSED_F32 = 0, PLAIT_FUSED_BF16 = 1, PLAIT_FUSED_I8 = 2 };
/* How the rows of a bag are combined. The mean of an empty bag is 0. */
enum { PLAIT_FUSED_SUM = 0, PLAIT_FUSED_MEAN = 1 };

/* ---- Embedding pooling and all-to-all: the embedding bags of a recommendation model whose tables are spread over the
 * ranks. Each rank has some tables, whole, and looks up the bags of the whole batch in them. A rank's output is its
 * share of the batch: a row a sample, in it the bags of rank 0's tables, one after the other, then of rank 1's, and so
 * on: {batch / ranks, all ranks' tables * dim} f32, without gaps. Where the batch is no multiple of the ranks, the
 * first ranks have a sample more. ---- */

struct plait_fused_embedding {
  int64_t batch;              /* samples of all ranks together, 1 or more; the same on all ranks */
  int64_t dim;                /* columns of every table, 1 or more; the same on all ranks */
  int64_t tables;             /* of this rank; 0 is allowed */
  const int64_t* rows;        /* by table */
  const void* const* data;    /* by table: rows x dim elements, row-major, without gaps. Kept in use by the plan */
  const float* const* scales; /* I8: by table, the factors of its rows; else not looked at */
  int type;                   /* PLAIT_FUSED_F32, _BF16 or _I8 */
  int mode;                   /* PLAIT_FUSED_SUM or _MEAN */
  int weighted;               /* 1: each index has a weight; only with _SUM */
};

/* Makes a plan.
 *
 *   output   this rank's, as above. From plait_alloc(), MPI_Alloc_mem() or, with PLAIT_SHARED=malloc, malloc(), the
 *            other ranks of the node write into it; else it costs a copy. It stays where it is until plait_fused_free()
 *   options  NULL, or words such as "workers=2 slice=65536": workers is the number of threads that compute, the
 *            caller included (0, the default: PLAIT_FUSED_WORKERS, or the processors that the rank has to itself);
 *            slice how many bytes leave at once (0: by the cost model; the same on all ranks); check=0 does not look
 *            at the indices and offsets of runs, which must then be right; order=plain computes the parts of rank 0
 *            first, then those of rank 1, and so on, instead of those that have the longest way
 *
 * Collective over `comm`; blocks; connects its ranks anew, which takes some milliseconds. The lists are not needed
 * afterwards, the tables are. On an error, which is the same on all ranks, *plan is PLAIT_FUSED_NULL. */
PLAIT_API int plait_fused_embedding_create(MPI_Comm comm, const struct plait_fused_embedding* shape, void* output,
                                           const char* options, plait_fused* plan);

/* Begins a run. Bag b (a sample of the batch, 0 to batch - 1) of this rank's table t has the indices from
 * offsets[t * batch + b] to before offsets[t * batch + b + 1]; offsets are tables * batch + 1 numbers that do not
 * descend, from 0 on at least and up to `count` at most.
 *
 *   indices, count  rows of the tables, and how many there are
 *   weights         by index, where the plan is weighted; else not looked at
 *
 * These stay as they are, and the output is left alone, until plait_fused_wait(). Does not block. With one worker all
 * is computed in plait_fused_wait(). What is wrong with the arguments is said there. */
PLAIT_API int plait_fused_embedding_start(plait_fused plan, const int64_t* indices, int64_t count,
                                          const int64_t* offsets, const float* weights);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_embedding_run(plait_fused plan, const int64_t* indices, int64_t count, const int64_t* offsets,
                                        const float* weights);

/* ---- The same backward: gradients' all-to-all and their addition to the rows of the tables. A rank's gradients are
 * those of the forward direction's output, and lie as it does: a row a sample of its share of the batch, in it all
 * ranks' tables side by side. Each goes to the rank that has the table, which adds it to the rows of the bag:
 *
 *   row[index] += factor * (the index' weight; or 1 / the bag's indices; or 1) * the bag's gradient
 *
 * With factor = -learning rate that is a step of stochastic gradient descent. With rows that are zeros and factor = 1
 * they become the gradients of the tables, for any other optimizer. An index that is in a bag twice, or in several
 * bags, is added to for each time. Additions to a row have an order that the shapes and the placement of the ranks fix:
 * the same bits in every run of a plan, with any number of workers. Rows of F32 are added to in f32; those of BF16 are
 * rounded each time, to the nearest, ties to even: where many small terms meet in a row, collect them in F32. ---- */

/* Makes a plan. Everything as for plait_fused_embedding_create(), but:
 *
 *   shape      the forward direction's; `type` is that of the rows that are added to, F32 or BF16. Its `data` and
 *              `scales` are not looked at
 *   data       by table: the rows that are added to. No two tables share memory. They belong to the plan while a run is
 *              under way, and are kept in use
 *   gradients  this rank's, f32, without gaps. They stay where they are until plait_fused_free() */
PLAIT_API int plait_fused_embedding_back_create(MPI_Comm comm, const struct plait_fused_embedding* shape,
                                                void* const* data, const float* gradients, const char* options,
                                                plait_fused* plan);

/* Begins a run with the bags of the forward direction, as plait_fused_embedding_start() takes them, and a factor that
 * this rank's tables are added to with. These and the gradients stay as they are, and the tables are left alone, until
 * plait_fused_wait(). Does not block. With one worker all is computed in plait_fused_wait(). What is wrong with the
 * arguments is said there, and no table is touched then. */
PLAIT_API int plait_fused_embedding_back_start(plait_fused plan, const int64_t* indices, int64_t count,
                                               const int64_t* offsets, const float* weights, float factor);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_embedding_back_run(plait_fused plan, const int64_t* indices, int64_t count,
                                             const int64_t* offsets, const float* weights, float factor);

/* ---- Product and all-reduce: a step of decoding whose weights are spread over the ranks along their depth (tensor
 * parallelism). Rank r has W_r, rows x depth_r, and x_r, `columns` vectors of depth_r f32; each rank's output is the
 * sum of all ranks' W_r x_r, `columns` vectors of `rows` f32. The sums are in the order of the ranks, and each is made
 * once: all ranks have the same bits, in every run of a plan. ---- */

struct plait_fused_gemv {
  int64_t rows;        /* of the weights and of the result, 1 or more; the same on all ranks */
  int64_t depth;       /* of this rank's weights: elements of a row, 0 or more */
  int64_t columns;     /* vectors, 1 to 16; the same on all ranks */
  int type;            /* of this rank's weights: PLAIT_FUSED_F32, _BF16 or _I8 */
  const void* data;    /* rows x depth elements, row-major, without gaps. Kept in use by the plan */
  const float* scales; /* I8: the factors of the rows. Kept in use by the plan. Else not looked at */
};

/* Makes a plan. Everything as for plait_fused_embedding_create(), but:
 *
 *   output   `columns` vectors of `rows` f32, one after the other, without gaps
 *   options  of these words: workers, slice (bytes of the output) and order */
PLAIT_API int plait_fused_gemv_create(MPI_Comm comm, const struct plait_fused_gemv* shape, float* output,
                                      const char* options, plait_fused* plan);

/* Begins a run with `x`, `columns` vectors of depth f32, one after the other, without gaps. It stays as it is, and the
 * output is left alone, until plait_fused_wait(). Does not block. With one worker all is computed in
 * plait_fused_wait(). What is wrong with the arguments is said there. */
PLAIT_API int plait_fused_gemv_start(plait_fused plan, const float* x);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_gemv_run(plait_fused plan, const float* x);

/* ---- Products of matrices with their collectives (sequence parallelism). All matrices are f32, row after row,
 * without gaps. A rank's share of the rows: consecutive ones, as many on all ranks, but where the rows are no multiple
 * of the ranks, the first ranks have one more.
 *
 * The products are OpenBLAS's or BLIS's where the machine has one (PLAIT_BLAS), else Plait's own. ---- */

struct plait_fused_gemm {
  int64_t rows;     /* of all ranks together, 1 or more; the same on all ranks */
  int64_t depth;    /* of this rank's weights: how many rows they have */
  int64_t columns;  /* of this rank's weights, and of its output */
  int type;         /* PLAIT_FUSED_F32 */
  const void* data; /* the weights, depth x columns. Kept in use by the plan */
};

/* Product and reduce-scatter: rank r has x_r, rows x depth_r, and W_r, depth_r x columns; its output is its share of
 * the rows of the sum of all ranks' x_r W_r. `columns` is the same on all ranks; a depth may be 0. The sums are in the
 * order of the ranks: the same bits in every run of a plan.
 *
 * Makes a plan. Everything as for plait_fused_gemv_create(), but:
 *
 *   output   this rank's share of the rows, `columns` f32 each. NULL where it has none */
PLAIT_API int plait_fused_gemm_reduce_scatter_create(MPI_Comm comm, const struct plait_fused_gemm* shape, float* output,
                                                     const char* options, plait_fused* plan);

/* Begins a run with `x`, rows x depth. It stays as it is, and the output is left alone, until plait_fused_wait(). Does
 * not block. With one worker all is computed in plait_fused_wait(). What is wrong with the arguments is said there. */
PLAIT_API int plait_fused_gemm_reduce_scatter_start(plait_fused plan, const float* x);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_gemm_reduce_scatter_run(plait_fused plan, const float* x);

/* All-gather and product: rank r has its share of the rows of x, each of `depth` f32, and W_r, depth x columns_r; its
 * output is x W_r, all rows. `depth` is the same on all ranks; a number of columns may be 0.
 *
 * Makes a plan. Everything as for plait_fused_gemv_create(), but:
 *
 *   output   rows x columns f32. NULL where it has none
 *   options  slice: bytes of x */
PLAIT_API int plait_fused_all_gather_gemm_create(MPI_Comm comm, const struct plait_fused_gemm* shape, float* output,
                                                 const char* options, plait_fused* plan);

/* Begins a run with `x`, this rank's share of the rows. As for plait_fused_gemm_reduce_scatter_start(). */
PLAIT_API int plait_fused_all_gather_gemm_start(plait_fused plan, const float* x);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_all_gather_gemm_run(plait_fused plan, const float* x);

/* ---- A layer of experts that are spread over the ranks (mixture of experts), in two halves. Each rank has some
 * tokens, each of which chooses some experts; and some experts, numbered from rank 0's on. All matrices are f32, row
 * after row, without gaps. Runs differ in what is chosen: a plan has room for `capacity` rows from each rank to each.
 * ---- */

struct plait_fused_moe {
  int64_t tokens;          /* of this rank, 0 or more */
  int64_t choices;         /* of a token, 1 to 64; the same on all ranks */
  int64_t experts;         /* of this rank, 0 or more */
  int64_t depth;           /* of the weights: how many rows they have; the same on all ranks */
  int64_t columns;         /* of the weights and of the output; the same on all ranks */
  int64_t capacity;        /* choices of one rank's tokens for one rank's experts at most; the same on all ranks */
  int type;                /* PLAIT_FUSED_F32 */
  const void* const* data; /* by expert of this rank: weights, depth x columns. Kept in use by the plan */
};

/* Dispatch: tokens go to the experts that they have chosen, and each expert multiplies them by its weights: a product
 * begins as soon as its rows have come.
 *
 * Makes a plan. Everything as for plait_fused_gemv_create(), but:
 *
 *   output   ranks x capacity x columns f32. The part of each rank has a row for each of its choices: first those for
 *            this rank's first expert, in the order of the tokens, then those for the second one, and so on. Other rows
 *            are left alone. NULL where this rank has no experts
 *   counts   ranks x experts numbers, written by plait_fused_wait(): how many rows each rank has for each expert
 *   options  slice: bytes of tokens
 *
 * The list is not needed afterwards, the weights are. */
PLAIT_API int plait_fused_moe_dispatch_create(MPI_Comm comm, const struct plait_fused_moe* shape, float* output,
                                              int64_t* counts, const char* options, plait_fused* plan);

/* Begins a run.
 *
 *   x        this rank's tokens, tokens x depth
 *   experts  tokens x choices numbers of experts, among those of all ranks; -1: none, the choice is dropped
 *
 * These stay as they are, and the output is left alone, until plait_fused_wait(). Does not block. With one worker all
 * is computed in plait_fused_wait(). What is wrong with the arguments, or over the capacity, is said there. */
PLAIT_API int plait_fused_moe_dispatch_start(plait_fused plan, const float* x, const int32_t* experts);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_moe_dispatch_run(plait_fused plan, const float* x, const int32_t* experts);

/* Combine: each expert multiplies the rows that it has by its weights, and the results go to the tokens that have
 * chosen it. A token gets the sum of the results of its choices, each times its weight, in the order of the choices:
 * the same bits in every run of the same choices. A token all of whose choices are dropped gets 0.
 *
 * Makes a plan. Everything as for plait_fused_gemv_create(), but:
 *
 *   output   tokens x columns f32. NULL where this rank has no tokens */
PLAIT_API int plait_fused_moe_combine_create(MPI_Comm comm, const struct plait_fused_moe* shape, float* output,
                                             const char* options, plait_fused* plan);

/* Begins a run.
 *
 *   x        ranks x capacity x depth f32, with rows as a dispatch of the same choices leaves them; others are not
 *            looked at. NULL where this rank has no experts
 *   experts  as for the dispatch
 *   weights  tokens x choices factors; those of dropped choices are not looked at
 *
 * As for plait_fused_moe_dispatch_start(). */
PLAIT_API int plait_fused_moe_combine_start(plait_fused plan, const float* x, const int32_t* experts,
                                            const float* weights);

/* That and plait_fused_wait(). */
PLAIT_API int plait_fused_moe_combine_run(plait_fused plan, const float* x, const int32_t* experts,
                                          const float* weights);

/* ---- All plans ---- */

/* Ends a run: blocks until this rank's output (or tables) is complete, and what it gave may be changed. Where what one
 * rank gave cannot be used (an index that is no row, an offset that is negative or descends, more rows than there is
 * room for, a missing list or vector), all ranks return an error that names the argument, the rank and the value; no
 * output or table has been touched then, and the plan can be started again. After a failed transfer it can only be
 * freed. */
PLAIT_API int plait_fused_wait(plait_fused plan);

/* What was planned, as JSON: the workers, this rank's slices and tiles, how many ranks they reach directly, by a copy
 * in shared memory, or by messages, and the bytes of memory that this rank has for slices on their way; of a plan that
 * runs on GPUs that it does ("on": "devices"), its slices, tiles and memory there. The string lives as long as the
 * plan. Local. */
PLAIT_API const char* plait_fused_describe(plait_fused plan);

/* Frees the plan and sets it to PLAIT_FUSED_NULL; ends a run that is under way. Collective, in the same order as for
 * other plans; before MPI_Finalize, which else does it. */
PLAIT_API int plait_fused_free(plait_fused* plan);

#ifdef __cplusplus
}
#endif

#endif
