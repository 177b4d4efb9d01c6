#include "runtime/job/reasons.h"

#include "plan/choose/planner.h"

namespace plait::runtime {

const char* reasons::of_communicator(bool inter, int ranks) {
  if (inter) return reasons::inter_communicator;
  if (ranks == 1) return reasons::one_rank;
  return ranks > plan::most_team_ranks ? plan::reasons::too_large : nullptr;
}

}  // namespace plait::runtime
