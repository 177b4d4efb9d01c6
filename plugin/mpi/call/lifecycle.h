// When Plait starts and ends in a process: the frame of MPI's life.
#pragma once

#include <string>
#include <vector>

#include "plugin/layer.h"
#include "runtime/job/attendance.h"

namespace plait::plugin {

// Entries "PLAIT_X=value" of a binding's own, which stand before the environment's. Before the start.
void prefer_settings(std::vector<std::string> entries);

// The frame of MPI's life. The host's MPI_Init lies between the first two, and a failed one is taken back. The second
// agrees on the settings with all ranks of MPI_COMM_WORLD: it communicates.
void begin_initialisation();
void end_initialisation(bool initialised);

// The same, after an MPI_Init that succeeded. Where some ranks are absent nobody is spoken to, and every call is the
// host's; where nothing is known it may wait for those that are, and says so.
void end_initialisation(const Attendance& attendance);

// For a call that comes although no MPI_Init was seen (the library was loaded later): starts without an agreement,
// where MPI is running. Thread-safe. Throws where memory is short.
void start_late();

// Before the host's MPI_Finalize, on all ranks: frees all communicators' state, prints the report, writes the trace.
void finish();

}  // namespace plait::plugin
