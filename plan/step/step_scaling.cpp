#include "plan/step/step_scaling.h"

#include <algorithm>
#include <cmath>

#include "plan/motif/motif.h"

namespace plait::plan::step {

Step on_ranks(Step step, int ranks, int to_ranks) {
  const double of_whole = static_cast<double>(ranks) / to_ranks;
  for (Task& task : step.tasks)
    if (task.collective && motif::has_pieces(*task.collective))
      task.bytes =
          std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(static_cast<double>(task.bytes) * of_whole)));
  return step;
}

Machine over_fastest_rail(Machine machine) {
  for (LinkLevel& level : machine.levels) {
    if (!level.network || level.rails < 2) continue;
    level.port_seconds_per_byte /= level.rail_shares.empty() ? 1.0 / level.rails : std::ranges::max(level.rail_shares);
    level.take_rails({});
  }
  return machine;
}

}  // namespace plait::plan::step
