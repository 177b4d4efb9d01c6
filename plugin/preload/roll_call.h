// Which ranks of MPI_COMM_WORLD have libplait.so. Each answers in what the host's own start exchanges between all
// processes by their launcher, and looks there for the others afterwards: no rank is asked that may not answer.
#pragma once

#include "plugin/layer.h"
#include "runtime/job/attendance.h"

namespace plait::plugin::preload {

// Around the host's MPI_Init, by the thread that makes it. The second may be asked only once MPI is initialised, and
// waits for no rank.
void begin_roll_call();
Attendance end_roll_call();

// After an MPI_Init that failed.
void leave_roll_call();

}  // namespace plait::plugin::preload
