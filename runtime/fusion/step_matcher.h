// Which call of an overlap plan's step each reduction of a program is: by order and size, step after step.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"

namespace plait::runtime {

// The answers follow from the sizes asked for so far and from nothing else, so that they are the same on all ranks of a
// communicator. A call takes the next place of its size, counted round from where the last one was: where the program
// leaves calls out, or begins its step anew, the places between are passed over. A call of a size that the plan has
// nowhere takes none, and the next one goes on as if it had not been.
class StepMatcher {
 public:
  explicit StepMatcher(const OverlapPlan& plan);

  struct Place {
    std::size_t call = 0;   // of the plan
    std::size_t group = 0;  // the call's
    std::size_t left = 1;   // calls of the group from this one on
  };
  std::optional<Place> next(std::size_t bytes);

 private:
  std::map<std::size_t, std::vector<std::size_t>> calls_of_;  // by bytes; ascending
  std::vector<std::size_t> group_of_, end_of_;                // by call: its group, and the group's end
  std::size_t expected_ = 0;                                  // call
};

}  // namespace plait::runtime
