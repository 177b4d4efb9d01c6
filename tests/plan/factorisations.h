// The uniform hierarchies of a number of ranks, for tests.
#pragma once

#include <vector>

namespace plait::plan {

inline void append_factorisations(int ranks, int levels, std::vector<int>& prefix, std::vector<std::vector<int>>& all) {
  if (ranks == 1) {
    if (!prefix.empty()) all.push_back(prefix);
    return;
  }
  if (levels == 0) return;
  for (int factor = 2; factor <= ranks; ++factor) {
    if (ranks % factor != 0) continue;
    prefix.push_back(factor);
    append_factorisations(ranks / factor, levels - 1, prefix, all);
    prefix.pop_back();
  }
}

// All ordered factorisations of `ranks` into at most `levels` factors of two or more, outermost first.
inline std::vector<std::vector<int>> factorisations(int ranks, int levels) {
  std::vector<std::vector<int>> all;
  std::vector<int> prefix;
  append_factorisations(ranks, levels, prefix, all);
  return all;
}

}  // namespace plait::plan
