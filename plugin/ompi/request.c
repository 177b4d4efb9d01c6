/* The requests of non-blocking collectives: of the kind that Open MPI's own have, because its MPI layer writes into
 * them what it retains (operators, datatypes) until they are complete. One belongs to each of Plait's operations, and
 * is used again with it. */
#include <string.h>

#include "plugin/ompi/bridge.h"
#include "plugin/ompi/interface.h"

/* In Open MPI 4.1 errors of requests of another type go to the error handler of MPI_COMM_WORLD. */
static const ompi_request_type_t request_type = OMPI_REQUEST_PML;

enum { running, complete, abandoned }; /* by MPI_Request_free, before the end */

typedef struct plait_ompi_request {
  ompi_coll_base_nbc_request_t super;
  void* operation;
  int state;
} plait_ompi_request_t;

static OBJ_CLASS_INSTANCE(plait_ompi_request_t, ompi_coll_base_nbc_request_t, NULL, NULL);

/* What the MPI layer retained when the request was complete already is still held. */
static void let_go(plait_ompi_request_t* request) {
  ompi_request_t* base = &request->super.super;
  const ompi_request_complete_fn_t release = base->req_complete_cb;
  base->req_complete_cb = NULL;
  if (release != NULL) release(base);
  OBJ_RELEASE(base->req_mpi_object.comm);
  plait_ompi_release_operation(request->operation);
}

/* By the functions that wait, after the end, or by MPI_Request_free at any time. */
static int free_request(ompi_request_t** handle) {
  ompi_request_t* base = *handle;
  plait_ompi_request_t* request = (plait_ompi_request_t*)base;
  int state = __atomic_load_n(&request->state, __ATOMIC_ACQUIRE);
  OMPI_REQUEST_FINI(base);
  *handle = MPI_REQUEST_NULL;
  if (state == running &&
      __atomic_compare_exchange_n(&request->state, &state, abandoned, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return OMPI_SUCCESS;
  while (!REQUEST_COMPLETE(base)) { /* another thread is just about to say so */
  }
  plait_ompi_found_complete(request->operation);
  let_go(request);
  return OMPI_SUCCESS;
}

/* Collectives cannot be cancelled. */
static int cancel_request(ompi_request_t* base, int flag) {
  (void)base, (void)flag;
  return OMPI_SUCCESS;
}

int plait_ompi_start_request(void* operation, MPI_Comm comm, void** kept, MPI_Request* handle) {
  if (*kept == NULL) *kept = OBJ_NEW(plait_ompi_request_t);
  plait_ompi_request_t* request = *kept;
  if (request == NULL) return MPI_ERR_NO_MEM;
  ompi_request_t* base = &request->super.super;
  OMPI_REQUEST_INIT(base, false)
  base->req_type = request_type;
  base->req_state = OMPI_REQUEST_ACTIVE;
  base->req_status = ompi_status_empty;
  base->req_free = free_request;
  base->req_cancel = cancel_request;
  base->req_mpi_object.comm = comm;
  OBJ_RETAIN(comm); /* the program may free it, and the error handler of a failed request is the communicator's */
  request->super.cb.req_complete_cb = NULL;
  request->super.req_complete_cb_data = NULL;
  memset(&request->super.data, 0, sizeof request->super.data); /* nothing is retained yet, whatever the series keeps */
  request->operation = operation;
  __atomic_store_n(&request->state, running, __ATOMIC_RELAXED);
  *handle = base;
  return MPI_SUCCESS;
}

/* Once it is complete, another thread may start it anew. */
void plait_ompi_complete_request(MPI_Request handle, int error) {
  plait_ompi_request_t* request = (plait_ompi_request_t*)handle;
  handle->req_status.MPI_ERROR = error;
  const bool waited_for = __atomic_exchange_n(&request->state, complete, __ATOMIC_ACQ_REL) == running;
  ompi_request_complete(handle, waited_for);
  if (!waited_for) let_go(request);
}

/* ---- Persistent ones ---- */

static void let_communicator_go(ompi_coll_base_nbc_request_t* request) {
  if (request->super.req_mpi_object.comm != NULL) OBJ_RELEASE(request->super.req_mpi_object.comm);
}

/* Of the MPI layer's kind, though it retains nothing of a request that is complete, as an inactive one is. One more
 * holds it while it is active. */
typedef struct ompi_coll_base_nbc_request_t plait_ompi_persistent_t;
static OBJ_CLASS_INSTANCE(plait_ompi_persistent_t, ompi_coll_base_nbc_request_t, NULL, let_communicator_go);

static int free_persistent(ompi_request_t** handle) {
  ompi_request_t* base = *handle;
  plait_ompi_persistent_freed(base);
  OMPI_REQUEST_FINI(base);
  *handle = MPI_REQUEST_NULL;
  OBJ_RELEASE(base);
  return OMPI_SUCCESS;
}

static int start_one(ompi_request_t* base) {
  base->req_status = ompi_status_empty;
  base->req_complete = REQUEST_PENDING;
  base->req_state = OMPI_REQUEST_ACTIVE;
  OBJ_RETAIN(base);
  const int error = plait_ompi_start(base);
  if (error == MPI_SUCCESS) return error;
  base->req_complete = REQUEST_COMPLETED;
  base->req_state = OMPI_REQUEST_INACTIVE;
  OBJ_RELEASE(base);
  return error;
}

static int start_persistent(size_t count, ompi_request_t** requests) {
  int result = OMPI_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    const int error = start_one(requests[i]);
    if (error != MPI_SUCCESS) result = error;
  }
  return result;
}

int plait_ompi_make_persistent(MPI_Comm comm, MPI_Request* handle) {
  plait_ompi_persistent_t* request = OBJ_NEW(plait_ompi_persistent_t);
  if (request == NULL) return MPI_ERR_NO_MEM;
  ompi_request_t* base = &request->super;
  OMPI_REQUEST_INIT(base, true)
  base->req_type = request_type;
  base->req_status = ompi_status_empty;
  base->req_start = start_persistent;
  base->req_free = free_persistent;
  base->req_cancel = cancel_request;
  base->req_mpi_object.comm = comm;
  OBJ_RETAIN(comm);
  request->cb.req_free = NULL;
  request->req_complete_cb_data = NULL;
  memset(&request->data, 0, sizeof request->data);
  *handle = base;
  return MPI_SUCCESS;
}

void plait_ompi_complete_persistent(MPI_Request handle, int error) {
  handle->req_status.MPI_ERROR = error;
  ompi_request_complete(handle, true);
  OBJ_RELEASE(handle);
}
