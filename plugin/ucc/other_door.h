// Whether Plait takes this process's calls of MPI as well.
#pragma once

#include "plugin/layer.h"

namespace plait::plugin {

// nullptr: it does not. What the program calls of MPI comes to that binding first, and what it leaves to its host is to
// be the host's: a binding of UCC's below it would take it for one.
const char* other_door();

}  // namespace plait::plugin
