// How much of a team is set up.
#pragma once

#include <cstdint>

#include "runtime/layer.h"

namespace plait::runtime {

// UCX, the rates of the rails and the measurement of single copies take most of the time, and calls within
// short_call_bytes (schedule_cache.h) gain nothing by them.
enum class TeamExtent : std::uint8_t { short_calls, all_calls };

}  // namespace plait::runtime
