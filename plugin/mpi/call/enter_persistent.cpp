#include "plugin/mpi/call/enter_persistent.h"

namespace plait::plugin::binding {
namespace {

// A program cannot name what its MPI library has not, but may find it here.
template <class Function, class... All>
int call_host(Function function, All... all) {
  return function != nullptr ? function(all...) : MPI_ERR_OTHER;
}

}  // namespace

#define PLAIT_DEFINE(Name, name, parameters, arguments)                                                            \
  int name##_init(PLAIT_PARAMETERS parameters, MPI_Info info, MPI_Request* request) {                              \
    const auto on_host = [=] { return call_host(host().name##_init, PLAIT_PARAMETERS arguments, info, request); }; \
    return make_persistent<Collective::name>(on_host, request, PLAIT_PARAMETERS arguments);                        \
  }
PLAIT_COLLECTIVES(PLAIT_DEFINE)
#undef PLAIT_DEFINE

}  // namespace plait::plugin::binding
