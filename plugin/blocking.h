// Blocking calls: when a communicator is set up for them, and how they run.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>

#include "plugin/communicator.h"
#include "plugin/layer.h"
#include "plugin/request.h"
#include "runtime/team/extent.h"

namespace plait::plugin {

// Runs an eligible request, or says why not. The first eligible calls of a communicator are the host's; then it is set
// up, collectively. Throws nothing. `begin_ns`: of the call, 0 when nobody measures.
Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns);

// After the host has taken a call for which `communicator.timed` is set.
void end_host_call(Communicator& communicator);

// Sets up a communicator that waits for it, or that is set up for less; collective over it. Afterwards it is
// accelerated, or the host's for ever, or broken where a rank had failed before.
void set_up_now(Communicator& communicator, TeamExtent extent);

// For what is thrown before a call has begun.

// Where the others leave the call to the host, this rank does so as well: true until a communicator is set up. The call
// counts as an eligible one, as it does with the others unless its arguments are none of Plait's. Where they set up at
// this call, they hear that this rank cannot.
bool stay_with_host(Communicator& communicator) noexcept;

// This rank cannot take part in it, and the others are told where they can hear. `communicator`: nullptr: there is
// none. Returns what the call is to return.
int leave_call(MPI_Comm comm, Communicator* communicator, const std::exception& exception) noexcept;

}  // namespace plait::plugin
