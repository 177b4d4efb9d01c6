// How a call is planned, by what is the same on all ranks.
#pragma once

#include <cstddef>

#include "runtime/execution/communicator.h"
#include "runtime/execution/pair_exchange.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"
#include "runtime/layer.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// Slots of exchanges by pairs whose ranks have not agreed on another size.
inline constexpr std::size_t usual_slot_bytes = slot_bytes(usual_slot_class);
// Of which nobody learns.
PairExchange::Problem pair_problem(const Communicator& communicator, const Request& request, std::size_t slot_bytes);

// By which candidate of a trial (CallShape::candidate) a request's call is planned; the same on all ranks.
inline int candidate_of(const Request& request) {
  const bool rounds = request.reducer != nullptr && !request.reducer->exact;
  return rounds && job().config.trial == TrialMode::exact ? planners_candidate : settled_candidate;
}

}  // namespace plait::runtime
