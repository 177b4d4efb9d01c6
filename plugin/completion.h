// How the program learns that an operation is complete.
#pragma once

#include "plugin/operation.h"

namespace plait::plugin {

// Tells the program's request that the operation is complete. The operation may be gone afterwards.
void complete_request(Operation& operation);

// Whether the program's calls of MPI_Wait come to binding::wait().
bool waits_come_here();

}  // namespace plait::plugin
