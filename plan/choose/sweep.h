// When a growing collection is looked through for what nobody uses any more: so seldom that it costs each entry which
// is added a bounded number of looks, however many are in use. (Tarjan, Amortized Computational Complexity, 1985:
// doubling.)
#pragma once

#include <algorithm>
#include <cstddef>

namespace plait::plan {

class Sweep {
 public:
  // Up to so many entries are never looked through.
  explicit Sweep(std::size_t least) : least_(least), due_(least) {}
  bool is_due(std::size_t entries) const { return entries >= due_; }
  // So many entries were in use.
  void done(std::size_t left) { due_ = std::max(least_, 2 * left); }

 private:
  std::size_t least_, due_;
};

}  // namespace plait::plan
