// When each part of a plan runs by the cost model: the schedule that its predicted time is the length of. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "plan/choose/candidate.h"
#include "plan/model/collective.h"

namespace plait::plan {

// An instruction of the plan, as every chunk passes it. Times are seconds.
struct TimelineStep {
  std::string name;    // "RS.2(shared)"
  int level = 0;       // of the machine's names below: the outermost that it works on
  double begin = 0;    // of the first chunk, from the start of the call
  double seconds = 0;  // of one chunk, from its first message to its last
  double port = 0;  // for which a chunk occupies the way out of a node, or the rail that it is bound to; 0: not at all
  std::vector<bool> takes_part;  // by rank: the others hold nothing at that point, or have no partner
};

// Chunk k enters `period` seconds after chunk k - 1, so that the last one leaves the last step at `seconds`.
struct PlanTimeline {
  double seconds = 0;  // predicted, as break_down() has it
  double start = 0;    // of which a pass over the payload before the first chunk
  double period = 0;   // for which a chunk occupies the busiest level
  int chunks = 1;
  std::vector<TimelineStep> steps;
  std::vector<std::string> levels;       // names of the machine's links that the steps' levels mean
  std::vector<bool> network;             // by level: whether it connects nodes
  int rails = 0;                         // of a node; 0: the communicator has one node
  std::vector<std::int8_t> chunk_rails;  // chunk c goes over rail chunk_rails[c mod size]; empty: over all of them
};

// Of a plan as named_candidate() takes it. The exchanges of alltoall are no pipelines: their steps are the shares that
// the levels have in the time. Fails (invalid) where the call cannot use the plan.
Result<PlanTimeline> plan_timeline(const std::string& plan, const Call& call, const CandidateContext& context);

}  // namespace plait::plan
