// What the report and the trace get of an operation.
#pragma once

#include "runtime/layer.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

// It has come to its end. Throws where memory is short.
void record_operation(Operation& operation);

}  // namespace plait::runtime
