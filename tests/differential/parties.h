// The communicators that the test makes its calls on.
#pragma once

#include <vector>

#include "tests/differential/trial.h"

namespace plait::test {

// MPI_COMM_WORLD first. The same list on all ranks; a rank is not a member of all of them.
std::vector<Party> make_parties();
void free_parties(std::vector<Party>& parties);

}  // namespace plait::test
