// Which ranks of MPI_COMM_WORLD have Plait, before any of them speaks to the others: those that have it not would not
// answer.
#pragma once

#include <functional>

namespace plait::runtime {

struct Attendance {
  bool known = true;
  int first_present = 0;  // where it is known
  int first_absent = -1;  // negative: none

  bool some_absent() const { return known && first_absent >= 0; }
};

// The same on all ranks whose answers are. `answered` is asked rank by rank, and no further than needed. Nobody has
// answered: the way of answering does not work here, and nothing is known.
Attendance call_roll(int ranks, const std::function<bool(int rank)>& answered);

}  // namespace plait::runtime
