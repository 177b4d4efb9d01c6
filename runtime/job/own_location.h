// Where this process runs, found once.
#pragma once

#include "runtime/layer.h"
#include "topo/location.h"

namespace plait::runtime {

// By its binding when it is first asked for. Thread-safe; the first call takes milliseconds.
const Location& own_location();
// Without what takes long (discover_rough_location()).
const Location& own_rough_location();

}  // namespace plait::runtime
