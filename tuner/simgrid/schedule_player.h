// Plays a rank's schedule with messages of MPI's between simulated ranks (SimGrid's SMPI), an actor a rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tuner/simgrid/schedule_progress.h"

namespace plait::tuner {

// Memory that messages come from and go to, whatever is in it; as long as the longest of them.
struct MessageMemory {
  std::byte* sent = nullptr;
  std::byte* received = nullptr;
};

class SchedulePlayer {
 public:
  // Of this rank, in MPI_COMM_WORLD. `schedule` stays where it is.
  SchedulePlayer(const plan::BoundSchedule& schedule, const MessageMemory& memory)
      : progress_(schedule), memory_(memory) {}

  // All steps, once. Fails (invalid) where steps are left that wait for ever.
  Status play();

 private:
  void post();

  ScheduleProgress progress_;
  MessageMemory memory_;
  std::vector<MPI_Request> requests_;
  std::vector<Work> works_;  // by request
};

}  // namespace plait::tuner
