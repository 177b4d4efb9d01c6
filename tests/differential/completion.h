// Ends operations that were started, in one of the many ways that MPI has.
#pragma once

#include <mpi.h>

#include <span>

#include "tests/differential/random.h"

namespace plait::test {

// Completes all requests, together with messages of this process to itself. Which functions are used, and in which
// order requests are waited for, `random` decides: the ranks need not agree. // Returns whether all of them said what
// MPI wants them to.
bool complete(std::span<MPI_Request* const> requests, Random& random);

}  // namespace plait::test
