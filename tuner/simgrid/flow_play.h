// Plays all ranks' schedules at once in SimGrid's network, without an actor a rank: an event a message, so that 65,536
// ranks are simulated. Messages take what SMPI's take: an envelope more than their bytes, a processor's time to post
// and (of short ones) to take, their senders waiting for the receivers of long ones.
#pragma once

#include <simgrid/s4u/Host.hpp>
#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"
#include "tuner/simgrid/global_links.h"

namespace plait::tuner {

struct FlowJob {
  std::vector<simgrid::s4u::Host*> hosts;  // by rank
  int ranks_per_node = 1;
  double near_s = 0, far_s = 0;  // of a message on a processor: within a node, between nodes
};

struct Played {
  double seconds = 0;       // of the slowest rank, all having begun at one time
  double global_bytes = 0;  // of messages, times the global links that they cross
};

// From one actor. `schedules` by rank. Fails (invalid) where steps wait for ever, or for longer than `silence_s`, in
// simulated time.
Result<Played> play_flows(const FlowJob& job, const std::vector<plan::BoundSchedule>& schedules,
                          GlobalCrossings& crossings, double silence_s);

}  // namespace plait::tuner
