// What figures were measured on.
#pragma once

#include <map>
#include <string>

namespace plait::plan {

// Names ("mpi", "hardware") with what stands for them, as text.
using Fingerprint = std::map<std::string, std::string>;

}  // namespace plait::plan
