// What `plait trace` reads: a recording (docs/record.md), a step (docs/schedule.md) or a Chakra execution trace.
#pragma once

#include <string_view>

#include "core/status.h"
#include "plan/step/trace.h"

namespace plait::plan::step {

// By content: "plait_recording", "plait_step", or else Chakra. `ranks`: of communicators of which the file does not say
// how many they have; 0: nobody knows. Fails (invalid) with the place and what was expected there.
Result<Trace> parse_trace(std::string_view text, int ranks);

}  // namespace plait::plan::step
