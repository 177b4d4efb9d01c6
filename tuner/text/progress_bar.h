// Progress on standard error, a line a step.
#pragma once

#include <string>

namespace plait::tuner {

// "[####................] 20 %  one way". `done`: 0 to 1.
void print_progress(const std::string& what, double done);

}  // namespace plait::tuner
