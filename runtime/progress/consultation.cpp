#include "runtime/progress/consultation.h"

namespace plait::runtime {

void Consultation::prepare(Team& team, std::size_t numbers, const Reducer& reducer) {
  const Call call{.collective = Collective::allreduce, .count = numbers, .element_bytes = number_bytes};
  team_ = &team;
  prepared_ = team.schedules.hold({.call = call, .in_place = true, .candidate = planners_candidate});
  if (!prepared_->accelerated) return;
  const BoundSchedule& schedule = prepared_->schedule;
  needs_host_ = schedule.channels_used.any(&ChannelTraits::needs_host);
  const std::size_t bytes = WorkMemory::padded(numbers * number_bytes);
  std::byte* work = memory_.reserve(bytes + schedule.scratch_bytes);
  request_.reducer = &reducer;
  execution_ = {.schedule = &schedule, .staging = {.buffers = {{work, work, work + bytes}}}};
}

}  // namespace plait::runtime
