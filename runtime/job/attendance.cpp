#include "runtime/job/attendance.h"

namespace plait::runtime {

Attendance call_roll(int ranks, const std::function<bool(int)>& answered) {
  Attendance found{.known = false, .first_present = -1, .first_absent = -1};
  for (int rank = 0; rank < ranks && (!found.known || found.first_absent < 0); ++rank) {
    const bool present = answered(rank);
    if (present && !found.known) found.first_present = rank;
    if (!present && found.first_absent < 0) found.first_absent = rank;
    found.known |= present;
  }
  return found;
}

}  // namespace plait::runtime
