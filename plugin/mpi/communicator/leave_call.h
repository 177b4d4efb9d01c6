// For what is thrown before a call has begun.
#pragma once

#include <mpi.h>

#include <exception>

#include "plugin/layer.h"
#include "plugin/mpi/communicator/communicator.h"

namespace plait::plugin {

// This rank cannot take part in it, and the others are told where they can hear. `communicator`: nullptr: there is
// none. Returns what the call is to return.
int leave_call(MPI_Comm comm, MpiCommunicator* communicator, const std::exception& exception) noexcept;

}  // namespace plait::plugin
