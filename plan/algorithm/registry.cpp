#include "plan/algorithm/registry.h"

#include <algorithm>

namespace plait::plan {

const Algorithm* algorithm_named(std::string_view name) {
  const auto found = std::find_if(all_algorithms.begin(), all_algorithms.end(),
                                  [&](const Algorithm* algorithm) { return algorithm->name == name; });
  return found == all_algorithms.end() ? nullptr : *found;
}

const Algorithm* default_algorithm(Instruct what) {
  // What fits three members fits any number.
  return *std::find_if(all_algorithms.begin(), all_algorithms.end(),
                       [&](const Algorithm* algorithm) { return algorithm->fits(what, 3); });
}

}  // namespace plait::plan
