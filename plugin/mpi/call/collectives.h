// The accelerated collectives, with MPI's own signatures: blocking, non-blocking and persistent ones. Each turns its
// arguments into a Request, or hands the call to the host as it came. What the other ranks' bindings decide is decided
// here from the same facts (design rule 1).
#pragma once

#include <mpi.h>

#include "plugin/lists/collective_functions.h"

namespace plait::plugin::binding {

#define PLAIT_DECLARE(Name, name, parameters, arguments)    \
  int name parameters;                                      \
  int i##name(PLAIT_LIST parameters, MPI_Request* request); \
  int name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request);
PLAIT_COLLECTIVES(PLAIT_DECLARE)
#undef PLAIT_DECLARE

}  // namespace plait::plugin::binding
