// The MPI underneath, as the binding reaches it. Its collectives, its memory and its start and end are reached only
// through this table: by name they would come back to us, because the preload binding defines both their MPI_ and their
// PMPI_ names. Every other function of MPI is called by its PMPI_ name.
#pragma once

#include <mpi.h>

#include "plugin/lists/collective_functions.h"

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

namespace plait::plugin {

struct MpiOperation;  // operation.h

struct Host {
  decltype(&MPI_Init) init = nullptr;
  decltype(&MPI_Init_thread) init_thread = nullptr;
  decltype(&MPI_Finalize) finalize = nullptr;
  decltype(&MPI_Alloc_mem) alloc_mem = nullptr;
  decltype(&MPI_Free_mem) free_mem = nullptr;
  // The collectives in their three forms; a persistent one is nullptr where the host has none, which no program can
  // call then.
#define PLAIT_MEMBER(Name, name, parameters, arguments) \
  decltype(&MPI_##Name) name = nullptr;                 \
  decltype(&MPI_I##name) i##name = nullptr;             \
  decltype(&PLAIT_PERSISTENT(Name)) name##_init = nullptr;
  PLAIT_COLLECTIVES(PLAIT_MEMBER)
#undef PLAIT_MEMBER
#define PLAIT_MEMBER(Name, name, parameters, arguments) decltype(&MPI_##Name) name = nullptr;
  PLAIT_COMMUNICATORS(PLAIT_MEMBER)
#undef PLAIT_MEMBER
  decltype(&MPI_Start) start = nullptr;
  decltype(&MPI_Startall) startall = nullptr;
  decltype(&MPI_Request_free) request_free = nullptr;
  decltype(&MPI_Wait) wait = nullptr;
  // Only the preload binding has these.
  decltype(&MPI_Waitall) waitall = nullptr;
  decltype(&MPI_Waitany) waitany = nullptr;
  decltype(&MPI_Waitsome) waitsome = nullptr;
  decltype(&MPI_Test) test = nullptr;
  decltype(&MPI_Testall) testall = nullptr;
  decltype(&MPI_Testany) testany = nullptr;
  decltype(&MPI_Testsome) testsome = nullptr;
  // The request that the program gets for an operation: made and put into its `handle`, and told of the operation's end
  // and `error`, after which the operation may be gone. nullptr: generalized requests.
  int (*start_request)(MpiOperation& operation) = nullptr;
  void (*complete_request)(MpiOperation& operation) = nullptr;
  // The same for a persistent one, made once, inactive, and put into `persistence.handle`. Its starts come to
  // binding::start(), its end to request_freed(). nullptr: persistent receives.
  int (*make_persistent_request)(MpiOperation& operation) = nullptr;
  void (*complete_persistent_request)(MPI_Request request, int error) = nullptr;
  bool raises_errors =
      false;  // the host raises what a collective of plait::plugin::binding returns; else the binding does
};

namespace detail {
extern constinit Host host;
}

// Precondition: the binding has filled the table. It does so once, before its first call into the rest of plugin/.
inline const Host& host() { return detail::host; }
void install_host(const Host& host);

}  // namespace plait::plugin
