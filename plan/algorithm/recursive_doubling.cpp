#include "plan/algorithm/algorithms.h"

namespace plait::plan {

void recursive_doubling_allreduce(Builder& builder, Group group, const Segments& segments) {
  std::size_t power = 1;
  while (power * 2 <= group.size()) power *= 2;
  const std::size_t surplus = group.size() - power;

  // The first 2 * surplus members fold in pairs of neighbours, so that each holds an unbroken run of contributions.
  std::vector<int> active;
  for (std::size_t pair = 0; pair < surplus; ++pair) active.push_back(group[2 * pair]);
  for (std::size_t member = 2 * surplus; member < group.size(); ++member) active.push_back(group[member]);

  const Semantics& semantics = builder.semantics();
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    for (std::size_t pair = 0; pair < surplus; ++pair)
      builder.combine(group[2 * pair + 1], group[2 * pair], blocks_of(semantics, segments, chunk));
  for (std::size_t distance = 1; distance < power; distance *= 2)
    for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
      for (std::size_t member = 0; member < power; ++member)
        if ((member & distance) == 0)
          builder.exchange(active[member], active[member + distance], blocks_of(semantics, segments, chunk));
  for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
    for (std::size_t pair = 0; pair < surplus; ++pair)
      builder.move(group[2 * pair], group[2 * pair + 1], blocks_of(semantics, segments, chunk));
}

}  // namespace plait::plan
