// Without Open MPI's developer headers there is no way into what its processes exchange.
#include <mpi.h>

#include "plugin/preload/roll_call.h"

namespace plait::plugin::preload {

void begin_roll_call() {}
void leave_roll_call() {}

Attendance end_roll_call() {
  int ranks = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return {.known = ranks == 1};
}

}  // namespace plait::plugin::preload
