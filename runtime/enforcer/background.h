// Threads that work beside the program.
#pragma once

#include "runtime/layer.h"

namespace plait::runtime {

// The calling thread gets a tenth of what the program's threads get of a processor that they share.
void run_in_the_background();

}  // namespace plait::runtime
