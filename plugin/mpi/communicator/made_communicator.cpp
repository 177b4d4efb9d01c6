#include "plugin/mpi/communicator/made_communicator.h"

#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/host/host.h"
#include "runtime/call/made_communicator.h"
#include "runtime/job/job.h"

namespace plait::plugin {

void set_up_world() {
  runtime::set_up_world([] { return find_communicator(MPI_COMM_WORLD); });
}

}  // namespace plait::plugin

namespace plait::plugin::binding {

#define PLAIT_DEFINE(Name, name, parameters, arguments)                                               \
  int name parameters {                                                                               \
    const int code = host().name arguments;                                                           \
    if (code == MPI_SUCCESS && phase() == Phase::open)                                                \
      set_up_made([=] { return find_communicator(comm); }, [=] { return find_communicator(*made); }); \
    return code;                                                                                      \
  }
PLAIT_COMMUNICATORS(PLAIT_DEFINE)
#undef PLAIT_DEFINE

}  // namespace plait::plugin::binding
