/* Between the component, which is C because Open MPI's headers are, and Plait, which is C++. */
#ifndef PLAIT_PLUGIN_OMPI_BRIDGE_H
#define PLAIT_PLUGIN_OMPI_BRIDGE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/lists/collective_functions.h"

/* Parameter lists of PLAIT_COLLECTIVES with one more at their end. */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Plait's, for the component ---- */

/* An entry of the table of PLAIT_* variables. The texts live for ever. */
struct plait_ompi_variable {
  const char* name;    /* "single_copy" of PLAIT_SINGLE_COPY */
  const char* help;    /* with the variable's type */
  const char* initial; /* what the environment says, else the default */
};
size_t plait_ompi_variable_count(void);
struct plait_ompi_variable plait_ompi_variable_at(size_t index);

/* Whether libplait.so was loaded into this process: it takes the calls before they reach a component. */
bool plait_ompi_preloaded(void);

/* One line on standard error. */
void plait_ompi_warn(const char* text);

/* The frame of MPI's life (plugin/mpi/call/lifecycle.h). Until plait_ompi_open() every call is the host's. `values` are
 * those of the first `count` variables in their order; they stand before the environment's. */
void plait_ompi_begin(const char* const values[], size_t count);
/* Collective over MPI_COMM_WORLD; the host's collectives work. */
void plait_ompi_open(void);
void plait_ompi_finish(void);

/* Plait's state of a module's communicator, so that a call need not look it up by its handle. All zero: not known yet.
 * Written and read by any thread. */
struct plait_ompi_state {
  void* communicator;
  uint64_t generation; /* of all communicators' states: none was destroyed since */
};

/* The collectives of plait::plugin::binding. An error that they return is still to be raised. */
#define PLAIT_OMPI_BINDING(Name, name, parameters, arguments)                           \
  int plait_ompi_binding_##name(PLAIT_LIST parameters, struct plait_ompi_state* state); \
  int plait_ompi_binding_i##name(PLAIT_LIST parameters, MPI_Request* request);          \
  int plait_ompi_binding_##name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request);
PLAIT_COLLECTIVES(PLAIT_OMPI_BINDING)
#undef PLAIT_OMPI_BINDING

/* The program finds an operation complete, which it lets go of next. */
void plait_ompi_found_complete(const void* operation);
/* The program has let go of an operation that is complete. */
void plait_ompi_release_operation(void* operation);

/* The program starts a persistent collective. Returns an MPI error code: then nothing was started. */
int plait_ompi_start(MPI_Request request);
/* The program frees one, perhaps before the end. */
void plait_ompi_persistent_freed(MPI_Request request);

/* ---- The component's, for Plait ---- */

/* The collectives of the component below this one on the communicator. They raise no error. */
#define PLAIT_OMPI_HOST(Name, name, parameters, arguments)                  \
  int plait_ompi_host_##name parameters;                                    \
  int plait_ompi_host_i##name(PLAIT_LIST parameters, MPI_Request* request); \
  int plait_ompi_host_##name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request);
PLAIT_COLLECTIVES(PLAIT_OMPI_HOST)
#undef PLAIT_OMPI_HOST

/* Starts the request of an operation on `comm`; `*kept` is the one that the operation had the last time, or NULL, and
 * keeps it for the next. Returns an MPI error code. */
int plait_ompi_start_request(void* operation, MPI_Comm comm, void** kept, MPI_Request* request);
/* Completes it with an MPI error code, which is the result of the function that waits for it. */
void plait_ompi_complete_request(MPI_Request request, int error);
/* The same for a persistent collective's, which is inactive until the program starts it, and frees itself after the
 * program has. */
int plait_ompi_make_persistent(MPI_Comm comm, MPI_Request* request);
void plait_ompi_complete_persistent(MPI_Request request, int error);

#ifdef __cplusplus
}
#endif

#endif
