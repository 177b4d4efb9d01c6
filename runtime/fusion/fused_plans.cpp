#include "runtime/fusion/fused_plans.h"

#include <algorithm>
#include <utility>

#include "runtime/job/job.h"

namespace plait::runtime {

bool uses_host(const PreparedCall& prepared) { return prepared.schedule.channels_used.any(&ChannelTraits::needs_host); }

std::shared_ptr<FusedPlans> make_fused_plans(ScheduleCache& schedules, std::shared_ptr<const OverlapPlan> plan,
                                             std::size_t element_bytes) {
  auto made = std::make_shared<FusedPlans>();
  made->element_bytes = element_bytes;
  made->changes = schedules.changes();
  // When that is differs between ranks: a plan of groups that is learned is there for each once it has heard the
  // answer.
  const int candidate = job().config.trial == TrialMode::exact ? planners_candidate : own_moment_candidate;
  std::size_t most_bytes = 0, most_scratch = 0, most_calls = 0;
  for (const OverlapGroup& group : plan->groups) {
    const std::size_t bytes = group_bytes(*plan, group);
    std::shared_ptr<const PreparedCall> prepared;
    if (group.calls > 1 && bytes % element_bytes == 0) {
      const Call call{
          .collective = Collective::allreduce, .count = bytes / element_bytes, .element_bytes = element_bytes};
      prepared = schedules.hold({.call = call, .in_place = true, .candidate = candidate});
      if (!prepared->accelerated) prepared = nullptr;
    }
    made->needs_host.push_back(prepared != nullptr && uses_host(*prepared));
    if (prepared != nullptr) {
      most_bytes = std::max(most_bytes, bytes);
      most_calls = std::max<std::size_t>(most_calls, group.calls);
      most_scratch = std::max<std::size_t>(most_scratch, prepared->schedule.scratch_bytes);
    }
    made->groups.push_back(std::move(prepared));
  }
  made->plan = std::move(plan);
  const std::size_t padded = WorkMemory::padded(most_bytes);
  std::byte* work = made->memory.reserve(padded + most_scratch);
  made->staging = {.buffers = {{work, work, work + padded}}, .packed_input = work, .packed_output = work};
  made->members.reserve(most_calls);
  return made;
}

}  // namespace plait::runtime
