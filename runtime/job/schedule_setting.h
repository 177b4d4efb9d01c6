// The step's schedule of the job (PLAIT_SCHEDULE): read by each process, taken only where all of them have the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/config.h"
#include "plan/step/schedule_file.h"
#include "runtime/layer.h"

namespace plait::runtime {

// What one process finds.
struct OwnSchedule {
  static constexpr std::uint64_t none = 0, refused = 1;
  std::shared_ptr<const plan::step::StepSchedule> schedule;  // nullptr: none, or not one that can be read
  bool own = false;                                          // the job makes its own ("auto")
  std::uint64_t hash = none;                                 // of the file, or why there is none
  std::string refusal;                                       // why not; empty where the user named none
};

// Reads the file that PLAIT_SCHEDULE names. Never fails: see `refusal`. Blocks on the disk.
OwnSchedule read_own_schedule(const Config& config);

}  // namespace plait::runtime
