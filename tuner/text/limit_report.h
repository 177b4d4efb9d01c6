// What `plait bench --limits` prints (docs/bench.md). Pure: no MPI.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tuner/text/node_limits.h"

namespace plait::tuner {

// For people; `markdown` with rules and bars. Ends with a newline.
std::string limits_text(const NodeLimits& limits, bool markdown);
nlohmann::ordered_json limits_json(const NodeLimits& limits);

}  // namespace plait::tuner
