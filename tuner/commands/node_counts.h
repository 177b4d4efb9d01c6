// --nodes of what is predicted over the number of nodes.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace plait::tuner {

inline constexpr int most_nodes = 65536;

// "16..2048": doubled from the first to the last; or a list, ascending. Fails (invalid) with what was expected.
Result<std::vector<int>> parse_nodes(const std::string& text);

}  // namespace plait::tuner
