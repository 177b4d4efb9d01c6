#include "edges.h"

#include <string.h>

static ucc_status_t offered(const struct place* place, ucc_coll_args_t args) {
  ucc_coll_req_h request;
  const ucc_status_t status = ucc_collective_init(&args, &request, place->team);
  if (status == UCC_OK) ucc_collective_finalize(request);
  return status;
}

static ucc_status_t offered_sum(const struct place* place, ucc_datatype_t type, ucc_reduction_op_t op) {
  char in[64] = {0}, out[64] = {0};
  ucc_coll_args_t args;
  memset(&args, 0, sizeof args);
  args.coll_type = UCC_COLL_TYPE_ALLREDUCE;
  args.op = op;
  args.src.info = (ucc_coll_buffer_info_t){in, 2, type, UCC_MEMORY_TYPE_HOST};
  args.dst.info = (ucc_coll_buffer_info_t){out, 2, type, UCC_MEMORY_TYPE_HOST};
  return offered(place, args);
}

const char* refuses(const struct place* place) {
  if (offered_sum(place, UCC_DT_INT32, UCC_OP_SUM) != UCC_OK) return "a sum of int32 was refused";
  if (offered_sum(place, UCC_DT_INT128, UCC_OP_SUM) != UCC_ERR_NOT_SUPPORTED) return "a sum of int128 was taken";
  if (offered_sum(place, UCC_DT_FLOAT32, UCC_OP_BAND) != UCC_ERR_NOT_SUPPORTED) return "bits of reals were taken";
  if (offered_sum(place, UCC_DT_INT32, UCC_OP_AVG) != UCC_ERR_NOT_SUPPORTED) return "an average of int32 was taken";
  if (offered_sum(place, UCC_DT_INT32, UCC_OP_MINLOC) != UCC_ERR_NOT_SUPPORTED) return "minloc was taken";
  return NULL;
}

const char* gives_up(const struct place* place) {
  ucc_coll_args_t args;
  ucc_coll_req_h request;
  memset(&args, 0, sizeof args);
  args.mask = UCC_COLL_ARGS_FIELD_FLAGS;
  args.flags = UCC_COLL_ARGS_FLAG_TIMEOUT;
  args.timeout = 0.1;
  args.coll_type = UCC_COLL_TYPE_BARRIER;
  if (place->rank != 0) return NULL;
  if (ucc_collective_init(&args, &request, place->team) != UCC_OK) return "a barrier with a timeout was refused";
  const ucc_status_t status = run(place, &request, 1, 1);
  ucc_collective_finalize(request);
  return status == UCC_ERR_TIMED_OUT ? NULL : "a barrier that the others do not post did not time out";
}
