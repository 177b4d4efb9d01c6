// A schedule that a communicator's calls are looked up in.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "plan/step/channel_lines.h"
#include "plan/step/schedule_file.h"
#include "runtime/enforcer/call_matcher.h"
#include "runtime/enforcer/enforced_plans.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct KnownSchedule {
  KnownSchedule(const plan::step::StepSchedule& schedule, std::unique_ptr<EnforcedPlans> made,
                std::uint64_t iterations_of_epoch = 0)
      : plans(std::move(made)), matcher(schedule.operations, iterations_of_epoch), lines(schedule) {}

  std::unique_ptr<EnforcedPlans> plans;
  CallMatcher matcher;
  plan::step::ChannelLines lines;
  bool in_force = true;  // false: it is only seen which calls are whose
};

}  // namespace plait::runtime
