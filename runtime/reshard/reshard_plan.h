// A resharding planned, proven and bound for this rank.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/reshard/arguments.h"
#include "runtime/team/schedule_cache.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// The ranks that it concerns, as one of them sees them.
struct ReshardParty {
  int rank = 0, ranks = 1;
  const Team* team = nullptr;  // nullptr: it is alone
};

struct ReshardPlan {
  std::shared_ptr<PreparedCall> prepared;
  std::string description;  // JSON
  std::string found;        // what all of the party must have found
  bool calls_host = false;
};

// Local; pure but for interned texts. `problem`: in the party's ranks. Throws where memory is short.
Result<ReshardPlan> plan_resharding(const ReshardProblem& problem, const ReshardParty& party);

}  // namespace plait::runtime
