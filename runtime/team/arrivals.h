// What a piece takes, by when pieces of one length have arrived, one after the other. A value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/layer.h"

namespace plait::runtime {

// The median over all pairs that lie half of the pieces apart: a receiver that had no processor for less than a quarter
// of the time, and found several at once, does not count.
class Arrivals {
 public:
  // Takes the memory for so many pieces.
  explicit Arrivals(std::size_t most) {
    seconds_.reserve(most);
    apart_.reserve(most);
  }

  void clear() { seconds_.clear(); }
  void add(double seconds) { seconds_.push_back(seconds); }

  // 0 of one, or of none.
  double seconds_a_piece() {
    const std::size_t half = seconds_.size() / 2;
    if (half == 0) return 0;
    apart_.clear();
    for (std::size_t i = 0; i + half < seconds_.size(); ++i) apart_.push_back(seconds_[i + half] - seconds_[i]);
    const auto middle = apart_.begin() + static_cast<std::ptrdiff_t>(apart_.size() / 2);
    std::nth_element(apart_.begin(), middle, apart_.end());
    return *middle / static_cast<double>(half);
  }

 private:
  std::vector<double> seconds_, apart_;
};

}  // namespace plait::runtime
