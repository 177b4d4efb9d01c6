// A program's step in Chrome's trace format, for chrome://tracing and Perfetto (docs/record.md).
#pragma once

#include <string>
#include <vector>

#include "plan/step/trace.h"

namespace plait::plan::step {

// A row for computation and one for each communicator; a further one where a communicator's operations overlap. Arrows
// lead from an operation to what waits for it.
std::string chrome_text(const Trace& trace, const std::vector<TaskSpan>& spans);

}  // namespace plait::plan::step
