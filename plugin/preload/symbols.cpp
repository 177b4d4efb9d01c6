// What libplait.so exports in MPI's place: both names of each function (docs/decisions/001-interpose-both-names.md).
//
// A program's call of MPI_X, and that of a tool behind us, arrive here. So do the calls of PMPI_X: from tools before
// us, and from the host's own Fortran bindings, which have then turned Fortran's MPI_IN_PLACE, MPI_BOTTOM and handles
// into C's.
#include "plugin/collectives.h"
#include "plugin/host.h"
#include "plugin/nonblocking.h"
#include "plugin/persistent.h"
#include "plugin/preload/allocation.h"
#include "plugin/preload/interposed.h"
#include "plugin/process.h"
#include "plugin/shared_memory.h"

#define PLAIT_EXPORT __attribute__((visibility("default")))

namespace plait::preload {
namespace {

// Open MPI starts itself again only after MPI_Finalize, which ends us for good.
template <class Call>
int initialise(Call&& call) {
  if (phase() != Phase::before) return call();  // the host reports a second initialisation
  begin_initialisation();
  const int error = call();
  end_initialisation(error == MPI_SUCCESS);
  if (error == MPI_SUCCESS && phase() == Phase::open && process().config.shared == "malloc") share_allocations();
  return error;
}

int init(int* argc, char*** argv) {
  return initialise([&] { return host().init(argc, argv); });
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  return initialise([&] { return host().init_thread(argc, argv, required, provided); });
}

int finalize() {
  finish();
  return host().finalize();
}

}  // namespace
}  // namespace plait::preload

extern "C" {

#define PLAIT_DEFINE_SYMBOLS(symbol, profiling_symbol, space, name, parameters, arguments)         \
  PLAIT_EXPORT int profiling_symbol parameters {                                                   \
    plait::preload::ensure_resolved();                                                             \
    return space::name arguments;                                                                  \
  }                                                                                                \
  PLAIT_EXPORT int symbol parameters {                                                             \
    plait::preload::ensure_resolved();                                                             \
    const plait::preload::ToolCall call(plait::preload::Function::name);                           \
    if (call.tool() != nullptr) return reinterpret_cast<decltype(&symbol)>(call.tool()) arguments; \
    return space::name arguments;                                                                  \
  }
#define PLAIT_DEFINE(space, Name, name, parameters, arguments) \
  PLAIT_DEFINE_SYMBOLS(MPI_##Name, PMPI_##Name, space, name, parameters, arguments)
#define PLAIT_DEFINE_FORMS(Name, name, parameters, arguments)                                               \
  PLAIT_DEFINE_SYMBOLS(MPI_I##name, PMPI_I##name, plait::door, i##name,                                     \
                       (PLAIT_LISTED parameters, MPI_Request * request), (PLAIT_LISTED arguments, request)) \
  PLAIT_DEFINE_SYMBOLS(PLAIT_PERSISTENT(Name), PLAIT_PERSISTENT_PROFILING(Name), plait::door, name##_init,  \
                       (PLAIT_LISTED parameters, MPI_Info info, MPI_Request * request),                     \
                       (PLAIT_LISTED arguments, info, request))
#define PLAIT_DEFINE_FRAME(Name, name, parameters, arguments) \
  PLAIT_DEFINE(plait::preload, Name, name, parameters, arguments)
#define PLAIT_DEFINE_DOOR(Name, name, parameters, arguments) \
  PLAIT_DEFINE(plait::door, Name, name, parameters, arguments)

PLAIT_FRAME(PLAIT_DEFINE_FRAME)
PLAIT_MEMORY(PLAIT_DEFINE_DOOR)
PLAIT_COLLECTIVES(PLAIT_DEFINE_DOOR)
PLAIT_REQUESTS(PLAIT_DEFINE_DOOR)
PLAIT_COLLECTIVES(PLAIT_DEFINE_FORMS)

}  // extern "C"
