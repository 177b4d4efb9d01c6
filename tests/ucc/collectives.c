#include "collectives.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Element i of what rank r brings. */
static int32_t value(int rank, size_t i) { return (int32_t)((rank + 1) * 1000 + (int)(i % 977)); }

static int32_t sum_of(int ranks, size_t i) {
  int32_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(rank, i);
  return sum;
}

ucc_status_t run(const struct place* place, ucc_coll_req_h* requests, int count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < count; ++i) {
      const ucc_status_t posted = ucc_collective_post(requests[i]);
      if (posted != UCC_OK) return posted;
    }
    for (int i = 0; i < count; ++i) {
      ucc_status_t status;
      while ((status = ucc_collective_test(requests[i])) > UCC_OK) {
        ucc_context_progress(place->context);
        sched_yield();
      }
      if (status != UCC_OK) return status;
    }
  }
  return UCC_OK;
}

struct work {
  const struct place* place;
  const struct shape* shape;
  int32_t *in, *out;
  size_t all;                /* elements of all ranks' parts */
  uint16_t* in_short;        /* room for two vectors */
  uint64_t *counts, *places; /* of lists, in the width that the shape says */
};

static ucc_coll_args_t arguments(const struct work* work, ucc_coll_type_t type) {
  ucc_coll_args_t args;
  memset(&args, 0, sizeof args);
  args.mask = UCC_COLL_ARGS_FIELD_FLAGS;
  args.coll_type = type;
  args.op = UCC_OP_SUM;
  args.root = (uint64_t)work->shape->root;
  if (work->shape->in_place) args.flags |= UCC_COLL_ARGS_FLAG_IN_PLACE;
  if (work->shape->persistent) args.flags |= UCC_COLL_ARGS_FLAG_PERSISTENT;
  if (work->shape->wide) args.flags |= UCC_COLL_ARGS_FLAG_COUNT_64BIT | UCC_COLL_ARGS_FLAG_DISPLACEMENTS_64BIT;
  return args;
}

static ucc_coll_buffer_info_t info(void* buffer, size_t count) {
  return (ucc_coll_buffer_info_t){buffer, count, UCC_DT_INT32, UCC_MEMORY_TYPE_HOST};
}

static ucc_coll_buffer_info_v_t info_v(const struct work* work, void* buffer) {
  return (ucc_coll_buffer_info_v_t){buffer, (ucc_count_t*)work->counts, (ucc_aint_t*)work->places, UCC_DT_INT32,
                                    UCC_MEMORY_TYPE_HOST};
}

static int call(const struct work* work, ucc_coll_args_t args) {
  ucc_coll_req_h request;
  if (ucc_collective_init(&args, &request, work->place->team) != UCC_OK) return -1;
  /* In place the first post would change what the second begins with. */
  const int posts = work->shape->persistent && !work->shape->in_place ? 3 : 1;
  const ucc_status_t status = run(work->place, &request, 1, posts);
  ucc_collective_finalize(request);
  return status == UCC_OK ? 0 : -1;
}

/* `count` elements from rank `from`'s `first` on. */
static int holds(const int32_t* data, int from, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (data[i] != value(from, first + i)) return 0;
  return 1;
}
static int holds_sum(const int32_t* data, int ranks, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (data[i] != sum_of(ranks, first + i)) return 0;
  return 1;
}

static void fill(int32_t* data, int rank, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] = value(rank, i);
}

static int barrier(struct work* work) { return call(work, arguments(work, UCC_COLL_TYPE_BARRIER)) == 0; }

static int bcast(struct work* work) {
  ucc_coll_args_t args = arguments(work, UCC_COLL_TYPE_BCAST);
  if (work->place->rank == work->shape->root) fill(work->out, work->shape->root, work->shape->count);
  args.src.info = info(work->out, work->shape->count);
  return call(work, args) == 0 && holds(work->out, work->shape->root, 0, work->shape->count);
}

static int allreduce(struct work* work) {
  ucc_coll_args_t args = arguments(work, UCC_COLL_TYPE_ALLREDUCE);
  fill(work->out, work->place->rank, work->shape->count);
  args.src.info = info(work->in, work->shape->count);
  args.dst.info = info(work->out, work->shape->count);
  return call(work, args) == 0 && holds_sum(work->out, work->place->ranks, 0, work->shape->count);
}

static int average(struct work* work) {
  ucc_coll_args_t args = arguments(work, UCC_COLL_TYPE_ALLREDUCE);
  double in[4], out[4];
  for (int i = 0; i < 4; ++i) in[i] = out[i] = value(work->place->rank, (size_t)i);
  args.op = UCC_OP_AVG;
  args.src.info = (ucc_coll_buffer_info_t){in, 4, UCC_DT_FLOAT64, UCC_MEMORY_TYPE_HOST};
  args.dst.info = (ucc_coll_buffer_info_t){out, 4, UCC_DT_FLOAT64, UCC_MEMORY_TYPE_HOST};
  if (call(work, args) != 0) return 0;
  for (int i = 0; i < 4; ++i)
    if (fabs(out[i] - (double)sum_of(work->place->ranks, (size_t)i) / work->place->ranks) > 1e-9) return 0;
  return 1;
}

/* A whole number below 256, as a real of 16 bits with so many for the fraction. */
static uint16_t short_real(unsigned number, int fraction_bits) {
  const int bias = fraction_bits == 10 ? 15 : 127;
  int exponent = 0;
  while (number >> (exponent + 1) != 0) ++exponent;
  return (uint16_t)((exponent + bias) << fraction_bits | (number - (1u << exponent)) << fraction_bits >> exponent);
}

static int short_reals(struct work* work, ucc_datatype_t type, int fraction_bits, ucc_reduction_op_t op) {
  ucc_coll_args_t args = arguments(work, UCC_COLL_TYPE_ALLREDUCE);
  const size_t count = work->shape->count;
  uint16_t *in = work->in_short, *out = in + count;
  for (size_t i = 0; i < count; ++i) in[i] = out[i] = short_real(3, fraction_bits);
  args.op = op;
  args.src.info = (ucc_coll_buffer_info_t){in, count, type, UCC_MEMORY_TYPE_HOST};
  args.dst.info = (ucc_coll_buffer_info_t){out, count, type, UCC_MEMORY_TYPE_HOST};
  if (call(work, args) != 0) return 0;
  const unsigned expected = op == UCC_OP_SUM ? 3 * (unsigned)work->place->ranks : 3;
  for (size_t i = 0; i < count; ++i)
    if (out[i] != short_real(expected, fraction_bits)) return 0;
  return 1;
}

static int reduce(struct work* work) {
  ucc_coll_args_t args = arguments(work, UCC_COLL_TYPE_REDUCE);
  const int root = work->place->rank == work->shape->root;
  fill(work->out, work->place->rank, work->shape->count);
  args.src.info = info(work->in, work->shape->count);
  args.dst.info = info(work->out, work->shape->count);
  return call(work, args) == 0 && (!root || holds_sum(work->out, work->place->ranks, 0, work->shape->count));
}

static int has_all_parts(const struct work* work) {
  for (int rank = 0; rank < work->place->ranks; ++rank)
    if (!holds(work->out + (size_t)rank * work->shape->count, rank, 0, work->shape->count)) return 0;
  return 1;
}

static int allgather(struct work* work, int lists) {
  ucc_coll_args_t args = arguments(work, lists ? UCC_COLL_TYPE_ALLGATHERV : UCC_COLL_TYPE_ALLGATHER);
  fill(work->out + (size_t)work->place->rank * work->shape->count, work->place->rank, work->shape->count);
  args.src.info = info(work->in, work->shape->count);
  if (lists)
    args.dst.info_v = info_v(work, work->out);
  else
    args.dst.info = info(work->out, work->all);
  return call(work, args) == 0 && has_all_parts(work);
}

static int gather(struct work* work, int lists) {
  ucc_coll_args_t args = arguments(work, lists ? UCC_COLL_TYPE_GATHERV : UCC_COLL_TYPE_GATHER);
  const int root = work->place->rank == work->shape->root;
  fill(work->out + (size_t)work->place->rank * work->shape->count, work->place->rank, work->shape->count);
  args.src.info = info(work->in, work->shape->count);
  if (lists)
    args.dst.info_v = info_v(work, work->out);
  else
    args.dst.info = info(work->out, work->all);
  return call(work, args) == 0 && (!root || has_all_parts(work));
}

static int scatter(struct work* work, int lists) {
  ucc_coll_args_t args = arguments(work, lists ? UCC_COLL_TYPE_SCATTERV : UCC_COLL_TYPE_SCATTER);
  const int in_place = work->shape->in_place && work->place->rank == work->shape->root;
  const size_t first = (size_t)work->place->rank * work->shape->count;
  if (lists)
    args.src.info_v = info_v(work, work->in);
  else
    args.src.info = info(work->in, work->all);
  args.dst.info = info(work->out, work->shape->count);
  return call(work, args) == 0 && (in_place || holds(work->out, work->shape->root, first, work->shape->count));
}

static int alltoall(struct work* work, int lists) {
  ucc_coll_args_t args = arguments(work, lists ? UCC_COLL_TYPE_ALLTOALLV : UCC_COLL_TYPE_ALLTOALL);
  const size_t first = (size_t)work->place->rank * work->shape->count;
  fill(work->out, work->place->rank, work->all);
  if (lists) {
    args.src.info_v = info_v(work, work->in);
    args.dst.info_v = info_v(work, work->out);
  } else {
    args.src.info = info(work->in, work->all);
    args.dst.info = info(work->out, work->all);
  }
  if (call(work, args) != 0) return 0;
  for (int rank = 0; rank < work->place->ranks; ++rank)
    if (!holds(work->out + (size_t)rank * work->shape->count, rank, first, work->shape->count)) return 0;
  return 1;
}

static int reduce_scatter(struct work* work, int lists) {
  ucc_coll_args_t args = arguments(work, lists ? UCC_COLL_TYPE_REDUCE_SCATTERV : UCC_COLL_TYPE_REDUCE_SCATTER);
  const size_t first = (size_t)work->place->rank * work->shape->count;
  fill(work->out, work->place->rank, work->all);
  args.src.info = info(work->in, work->all);
  if (lists)
    args.dst.info_v = info_v(work, work->out);
  else
    args.dst.info = info(work->out, work->shape->in_place ? work->all : work->shape->count);
  const int32_t* share = work->shape->in_place ? work->out + first : work->out;
  return call(work, args) == 0 && holds_sum(share, work->place->ranks, first, work->shape->count);
}

static void make_lists(struct work* work) {
  for (int rank = 0; rank < work->place->ranks; ++rank) {
    const uint64_t first = (uint64_t)rank * work->shape->count;
    if (work->shape->wide) {
      work->counts[rank] = work->shape->count;
      work->places[rank] = first;
    } else {
      ((uint32_t*)work->counts)[rank] = (uint32_t)work->shape->count;
      ((uint32_t*)work->places)[rank] = (uint32_t)first;
    }
  }
}

static const char* first_wrong(struct work* work) {
  if (!barrier(work)) return "barrier";
  if (!bcast(work)) return "bcast";
  if (!allreduce(work)) return "allreduce";
  if (!average(work)) return "average";
  if (!short_reals(work, UCC_DT_FLOAT16, 10, UCC_OP_SUM)) return "allreduce of float16";
  if (!short_reals(work, UCC_DT_FLOAT16, 10, UCC_OP_AVG)) return "average of float16";
  if (!short_reals(work, UCC_DT_BFLOAT16, 7, UCC_OP_SUM)) return "allreduce of bfloat16";
  if (!reduce(work)) return "reduce";
  if (!allgather(work, 0)) return "allgather";
  if (!allgather(work, 1)) return "allgatherv";
  if (!gather(work, 0)) return "gather";
  if (!gather(work, 1)) return "gatherv";
  if (!scatter(work, 0)) return "scatter";
  if (!scatter(work, 1)) return "scatterv";
  if (!alltoall(work, 0)) return "alltoall";
  if (!alltoall(work, 1)) return "alltoallv";
  if (!reduce_scatter(work, 0)) return "reduce_scatter";
  return reduce_scatter(work, 1) ? NULL : "reduce_scatterv";
}

const char* all_collectives(const struct place* place, const struct shape* shape) {
  struct work work = {.place = place, .shape = shape, .all = shape->count * (size_t)place->ranks};
  work.in = malloc((work.all + 1) * sizeof *work.in);
  work.out = malloc((work.all + 1) * sizeof *work.out);
  work.in_short = malloc((2 * shape->count + 1) * sizeof *work.in_short);
  work.counts = malloc((size_t)place->ranks * sizeof *work.counts);
  work.places = malloc((size_t)place->ranks * sizeof *work.places);
  const char* wrong = "no memory";
  if (work.in != NULL && work.out != NULL && work.in_short != NULL && work.counts != NULL && work.places != NULL) {
    fill(work.in, place->rank, work.all);
    make_lists(&work);
    wrong = first_wrong(&work);
  }
  free(work.in);
  free(work.out);
  free(work.in_short);
  free(work.counts);
  free(work.places);
  return wrong;
}
