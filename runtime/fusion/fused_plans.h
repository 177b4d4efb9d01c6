// How the groups of an overlap plan are reduced: the plans for their lengths, and the memory that their data is packed
// in. Made by the thread that posts; used by the one that is busy with progress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/overlap/overlap_plan.h"
#include "runtime/execution/staging.h"
#include "runtime/device/call_memory.h"
#include "runtime/layer.h"
#include "runtime/team/schedule_cache.h"

namespace plait::runtime {

struct FusedPlans {
  std::shared_ptr<const OverlapPlan> plan;
  std::size_t element_bytes = 0;
  std::uint64_t changes = 0;                                // ScheduleCache::changes() when they were made
  std::vector<std::shared_ptr<const PreparedCall>> groups;  // nullptr: of one call, or nothing for its length
  std::vector<bool> needs_host;                             // by group: some part of it calls MPI
  CallMemory memory;
  // Of the group that runs: one at a time does.
  Staging staging;
  GroupMembers members;  // with room for those of the longest
};

bool uses_host(const PreparedCall& prepared);

// Throws where memory is short.
std::shared_ptr<FusedPlans> make_fused_plans(ScheduleCache& schedules, std::shared_ptr<const OverlapPlan> plan,
                                             std::size_t element_bytes);

}  // namespace plait::runtime
