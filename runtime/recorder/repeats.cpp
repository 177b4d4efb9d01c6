#include "runtime/recorder/repeats.h"

#include <algorithm>
#include <vector>

namespace plait::runtime {

// The Z-algorithm on the sequence read backwards: same[i] is how far it is the same as itself from i on.
Repeat repeat_at_end(std::span<const std::uint64_t> sequence, std::size_t least_times, std::size_t least_covered) {
  const std::size_t size = sequence.size();
  const auto at = [&](std::size_t i) { return sequence[size - 1 - i]; };
  std::vector<std::size_t> same(size, 0);
  std::size_t begin = 0, end = 0;  // of the rightmost stretch that is known to be the same as the start
  for (std::size_t i = 1; i < size && i * least_times <= size; ++i) {
    if (i < end) same[i] = std::min(end - i, same[i - begin]);
    while (i + same[i] < size && at(same[i]) == at(i + same[i])) ++same[i];
    if (i + same[i] > end) begin = i, end = i + same[i];
    const std::size_t covered = i + same[i];
    if (covered >= i * least_times && covered >= least_covered) return {.length = i, .first = size - covered};
  }
  return {};
}

}  // namespace plait::runtime
