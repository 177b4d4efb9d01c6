// The overlap plan of the job (PLAIT_OVERLAP): read by each process, taken only where all of them have the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/config.h"
#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"

namespace plait::runtime {

// What one process finds.
struct OwnOverlapPlan {
  static constexpr std::uint64_t none = 0, refused = 1;
  std::shared_ptr<const OverlapPlan> plan;  // nullptr: none, or not one that can be used here
  bool learned = false;                     // the job makes its own ("auto")
  std::uint64_t hash = none;                // of the plan, or why there is none
  std::string refusal;                      // why not; empty where the user named none
};

// Reads the file that PLAIT_OVERLAP names, and looks whether it fits this process. Never fails: see `refusal`. Blocks
// on the disk. Precondition: MPI is initialised.
OwnOverlapPlan read_own_overlap_plan(const Config& config, const std::string& mpi_release);

}  // namespace plait::runtime
