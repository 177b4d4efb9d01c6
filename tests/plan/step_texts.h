// Files of steps that several tests read.
#pragma once

#include <string>

#include "plan/step/trace.h"

namespace plait::plan::step {

// With everything that a task can say.
Trace told_trace();
// Two calls, one of which does not block, and a wait between two computations.
std::string recording_text();
// As another tool writes it: a stream of messages, with what is 0 left out.
std::string foreign_chakra_text();

}  // namespace plait::plan::step
