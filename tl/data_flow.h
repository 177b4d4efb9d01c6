// Data of a run that comes from elsewhere, and goes there, while the run's steps are under way.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"

namespace plait::tl {

// What the engine asks. Steps are named by their place in the schedule that runs.
class DataFlow {
 public:
  virtual ~DataFlow() = default;
  // Whether the step waits for data: it is released once. Asked before the run's first step.
  virtual bool awaits(std::uint32_t step) const = 0;
  // What the step writes is written.
  virtual void note_complete(std::uint32_t step) = 0;
  // A glance: appends the steps whose data have come. True when anything moved. Does not block.
  virtual Result<bool> progress(std::vector<std::uint32_t>& released) = 0;
  // Whether something is on its way, or could be.
  virtual bool active() const = 0;
  // Whether all is where it is to be; once all steps are complete.
  virtual bool complete() const = 0;
};

}  // namespace plait::tl
