/* Which function of the MPI library called one of ours. */
#ifndef PLAIT_PLUGIN_OMPI_CALLER_H
#define PLAIT_PLUGIN_OMPI_CALLER_H

#include <stdbool.h>

struct plait_ompi_caller {
  const char* function; /* MPI_X, or by its other name PMPI_X */
  const void* place;    /* a return address that was found to lie within it; NULL: none yet */
};

/* Whether the return address of a call lies within the function. A few nanoseconds for one that does and came before,
 * else a search in the library's symbols. Thread-safe. */
bool plait_ompi_called_by(struct plait_ompi_caller* caller, const void* return_address);

#endif
