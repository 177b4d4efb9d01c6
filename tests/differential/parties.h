// The communicators that the test makes its calls on.
#pragma once

#include <vector>

#include "tests/differential/trial.h"

namespace plait::test {

// MPI_COMM_WORLD first, then MPI_COMM_SELF. The same list on all ranks; a rank is not a member of all of them.
std::vector<Party> make_parties();
// The thread that makes a party's calls. Each gets a communicator of this process alone.
inline std::size_t thread_of(std::size_t party, int threads) { return party % static_cast<std::size_t>(threads); }
void deal_out(std::vector<Party>& parties, int threads);
void free_parties(std::vector<Party>& parties);

}  // namespace plait::test
