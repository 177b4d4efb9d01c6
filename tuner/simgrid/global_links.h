// The links of a simulated network that its nodes share, and what has gone over them.
#pragma once

#include <simgrid/link.h>

#include <simgrid/s4u/Host.hpp>
#include <unordered_map>
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

// How many of them lie on the way from a node to another.
class GlobalCrossings {
 public:
  GlobalCrossings(Topology topology, int nodes) : topology_(topology), nodes_(nodes) {}
  int between(const simgrid::s4u::Host* from, const simgrid::s4u::Host* to);

 private:
  bool is_global(const simgrid::s4u::Link* link);

  Topology topology_;
  int nodes_;
  std::unordered_map<const simgrid::s4u::Link*, bool> known_;
  std::vector<simgrid::s4u::Link*> way_;
};

}  // namespace plait::tuner
