// Where the data of a datatype lie, for memory that MPI's own packing must not touch.
#pragma once

#include <vector>

#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

// The data of one element in the order in which they are packed; what is gapless is one run. Asks the host.
std::vector<ByteRun> runs_of(const Datatype& type);

}  // namespace plait::plugin
