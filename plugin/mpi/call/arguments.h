// The arguments of each collective as the program passed them: what they ask of Plait.
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "plugin/lists/collective_functions.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

// One function a collective, with MPI's parameters and these two: it fills the request, whose call.collective and lists
// are set, touching only what is significant on this rank. It returns nullptr, or why the call is not eligible: the
// same on all ranks, unless a rank's arguments are wrong. Not for inter-communicators. May throw std::bad_alloc.
namespace arguments {
#define PLAIT_DECLARE(Name, name, parameters, arguments) \
  const char* name(PLAIT_LIST parameters, const Communicator& communicator, Request& request);
PLAIT_COLLECTIVES(PLAIT_DECLARE)
#undef PLAIT_DECLARE
}  // namespace arguments

// A call as the program made it, of any form.
template <Collective which, class Prepare, class OnHost>
struct CollectiveCall {
  static constexpr Collective collective = which;
  const Prepare prepare;  // (communicator, request): arguments::which
  const OnHost on_host;   // (comm), or (comm, request) of a form that has a request: the call on the host
};

template <Collective which, class Prepare, class OnHost>
[[gnu::always_inline]] inline CollectiveCall<which, Prepare, OnHost> call_of(Prepare prepare, OnHost on_host) {
  return {prepare, on_host};
}

// Within a function that has the parameters of the collective.
#define PLAIT_CALL(name, arguments_of_it, on_host)                                                              \
  ::plait::plugin::call_of<::plait::plugin::Collective::name>(                                                  \
      [&](const ::plait::plugin::Communicator& plait_communicator, ::plait::plugin::Request& plait_request) {   \
        return ::plait::plugin::arguments::name(PLAIT_LIST arguments_of_it, plait_communicator, plait_request); \
      },                                                                                                        \
      on_host)

}  // namespace plait::plugin
