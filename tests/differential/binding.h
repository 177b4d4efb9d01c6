// Plait's own functions, where its library was loaded into this process.
#pragma once

#include <mpi.h>

#include <string>

namespace plait::test {

// Whether the library is there. Without it the functions below do nothing, and say "".
bool plait_present();
// Enabling makes the host's the last plan: Open MPI may return from a collective without data on the ranks that see so
// before its components get it. `own`: a communicator of this process alone, on which no other thread makes calls.
void enable_plait(bool enabled, MPI_Comm own = MPI_COMM_SELF);
// Of all ranks of `comm`: its calls go by that plan, where one of its collectives has it; else, and with "", by what
// Plait chooses.
void force_plan(MPI_Comm comm, const std::string& plan);
const char* last_plan();
const char* last_channels();

}  // namespace plait::test
