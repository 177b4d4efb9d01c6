#include "plugin/mpi/call/collectives.h"

#include "plugin/mpi/call/arguments.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/enter_nonblocking.h"
#include "plugin/mpi/call/enter_persistent.h"
#include "plugin/mpi/call/on_host.h"
#include "plugin/mpi/host/host.h"

namespace plait::plugin::binding {
namespace {

// A program cannot name what its MPI library has not, but may find it here.
template <class Function, class... All>
int call_if_there(Function function, All... all) {
  return function != nullptr ? function(all...) : MPI_ERR_OTHER;
}

}  // namespace

#define PLAIT_DEFINE(Name, name, parameters, arguments)                                                           \
  int name parameters {                                                                                           \
    const auto replace = [&](HostCopies& copies) { host_copies::name(copies, PLAIT_LIST arguments); };            \
    const auto on_host = [&](MPI_Comm) {                                                                          \
      const auto call = [&] { return host().name arguments; };                                                    \
      return call_on_host(comm, replace, call);                                                                   \
    };                                                                                                            \
    return enter(PLAIT_CALL(name, arguments, on_host), comm);                                                     \
  }                                                                                                               \
  int i##name(PLAIT_LIST parameters, MPI_Request* request) {                                                      \
    const auto replace = [&](HostCopies& copies) { host_copies::name(copies, PLAIT_LIST arguments); };            \
    const auto on_host = [&](MPI_Comm, MPI_Request* made) {                                                       \
      const auto call = [&](MPI_Request* handle) { return host().i##name(PLAIT_LIST arguments, handle); };        \
      return host_may_need_copies() ? post_with_copies(Collective::name, comm, replace, call, made) : call(made); \
    };                                                                                                            \
    return post(PLAIT_CALL(name, arguments, on_host), comm, request);                                             \
  }                                                                                                               \
  int name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request) {                                   \
    const auto replace = [&](HostCopies& copies) { host_copies::name(copies, PLAIT_LIST arguments); };            \
    const auto on_host = [&](MPI_Comm, MPI_Request* made) {                                                       \
      const auto call = [&](MPI_Request* handle) {                                                                \
        return call_if_there(host().name##_init, PLAIT_LIST arguments, info, handle);                             \
      };                                                                                                          \
      return host_may_need_copies() ? make_with_copies(Collective::name, comm, replace, call, made) : call(made); \
    };                                                                                                            \
    return make_persistent(PLAIT_CALL(name, arguments, on_host), comm, request);                                  \
  }
PLAIT_COLLECTIVES(PLAIT_DEFINE)
#undef PLAIT_DEFINE

}  // namespace plait::plugin::binding
