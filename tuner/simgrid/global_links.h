// The links of a simulated network that its nodes share, and what has gone over them.
#pragma once

#include <simgrid/link.h>

#include <vector>

#include "tuner/text/platform.h"

namespace plait::tuner {

// Between the switches of a fat tree, between the groups of a dragonfly, all between nodes of a torus. Needs SimGrid's
// plugin link_load. Of one rank.
class GlobalLinks {
 public:
  GlobalLinks() = default;  // none
  GlobalLinks(Topology topology, int nodes);

  // Since the simulation began, as SimGrid has it: rate times time, so that a message counts for the bytes of its
  // latency too, and for five in a hundred that go back. 0 where there are none.
  double bytes() const;

 private:
  std::vector<sg_link_t> links_;
};

}  // namespace plait::tuner
