// What a piece takes, by when pieces of one length have arrived, one after the other. A value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/layer.h"

namespace plait::runtime {

// The median of what all pairs of them say (Theil and Sen's slope): a receiver that had no processor for less than a
// quarter of the time, and found several at once, does not count.
class Arrivals {
 public:
  // Takes the memory for so many pieces.
  explicit Arrivals(std::size_t most) {
    seconds_.reserve(most);
    slopes_.reserve(most * (most - 1) / 2);
  }

  void clear() { seconds_.clear(); }
  void add(double seconds) { seconds_.push_back(seconds); }

  // 0 of one, or of none.
  double seconds_a_piece() {
    if (seconds_.size() < 2) return 0;
    slopes_.clear();
    for (std::size_t later = 1; later < seconds_.size(); ++later)
      for (std::size_t i = 0; i < later; ++i)
        slopes_.push_back((seconds_[later] - seconds_[i]) / static_cast<double>(later - i));
    const auto middle = slopes_.begin() + static_cast<std::ptrdiff_t>(slopes_.size() / 2);
    std::nth_element(slopes_.begin(), middle, slopes_.end());
    return *middle;
  }

 private:
  std::vector<double> seconds_, slopes_;
};

}  // namespace plait::runtime
