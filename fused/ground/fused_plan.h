// What all fused plans have in common towards the program: they are alive from their making on, and those that are
// left end before the job does.
#pragma once

#include <string>

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class FusedPlan {
 public:
  FusedPlan();  // throws where memory is short
  virtual ~FusedPlan();
  FusedPlan(const FusedPlan&) = delete;
  FusedPlan& operator=(const FusedPlan&) = delete;

  // Ends a run: what is this rank's is complete.
  virtual Status wait() = 0;
  virtual Members& members() = 0;
  // What was planned, as JSON.
  virtual const std::string& description() const = 0;
};

// Before the job ends, on all ranks: deletes those that the program has not freed, in the order in which they were
// made.
void finish_fused_plans();

}  // namespace plait::fused
