// Plays a rank's schedule with messages of MPI's between simulated ranks (SimGrid's SMPI): what the engine sends is
// sent, in its order and with its dependencies; nothing is computed, and nothing is in the messages.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"

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
      : schedule_(schedule), memory_(memory) {}

  // All steps, once. Fails (invalid) where steps are left that wait for ever.
  Status play();

 private:
  // What a request is of: a step, or a part of its shared-memory collective.
  struct Work {
    std::uint32_t step = 0;
    bool of_collective = false;
  };
  // A shared-memory collective under way: each member's part of the data goes to those who need it, as messages within
  // the node; a reduction first brings the parts to who combines them.
  struct Together {
    std::uint32_t step = 0;
    std::uint32_t pending = 0;  // messages
    int phase = 0;
  };

  void reset();
  void start_ready();
  bool may_start(std::uint32_t step) const;
  void start(std::uint32_t step);
  void complete(std::uint32_t step);
  void send(int peer, std::uint64_t bytes, int tag, const Work& work);
  void receive(int peer, std::uint64_t bytes, int tag, const Work& work);
  void start_phase(Together& together);
  void ended(const Work& work);

  const plan::BoundSchedule& schedule_;
  MessageMemory memory_;
  std::vector<std::uint32_t> left_;       // by step: predecessors that are not complete
  std::vector<std::uint32_t> lane_next_;  // by lane: how many of its steps have started
  std::vector<std::uint32_t> ready_;      // steps whose predecessors are complete, which have not started
  std::vector<Together> together_;
  std::vector<MPI_Request> requests_;
  std::vector<Work> works_;  // by request
  std::uint32_t completed_ = 0;
};

}  // namespace plait::tuner
