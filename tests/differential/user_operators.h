// User-defined operators, and the types that they are for.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "tests/differential/basic.h"

namespace plait::test {

// A user-defined operator in the place of a predefined one of the host that is wrong; MPI_OP_NULL where it is right. Of
// MPICH 4.0: unsigned integers are compared with a sign, 16-byte reals are long doubles. Of Open MPI 4.1:
// - sums of 8 and 16 bit integers saturate in its vector instructions, and wrap around elsewhere;
// - MPI_OFFSET is compared without its sign, and MPI_UNSIGNED_LONG with one;
// - MPI_REAL16 and MPI_COMPLEX32 are taken for x87's long double, which no Fortran compiler uses for REAL(16) here.
MPI_Op corrected_operator(const std::string& type, const std::string& op);

void append_user_basics(std::vector<Basic>& basics);
void free_user_basics();

}  // namespace plait::test
