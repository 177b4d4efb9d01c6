// Where the ranks of a measured job are, and the least time that its network leaves a collective. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "topo/location.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

struct JobShape {
  std::vector<int> node_of;        // by rank
  std::vector<int> ranks_on_node;  // by node

  int ranks() const { return static_cast<int>(node_of.size()); }
  int nodes() const { return static_cast<int>(ranks_on_node.size()); }
};

JobShape shape_of(std::span<const Location> locations);
// Equal nodes of consecutive ranks. `invalid` when the ranks cannot be divided so.
Result<JobShape> equal_nodes(int ranks, int nodes);

// "slot": the ranks of each node are consecutive; "node": rank i is on node i mod n; else "other".
std::string_view mapping(const JobShape& job);

// Bytes that the busiest NIC must send or receive in one direction, whatever the algorithm (plan::port_bytes()); 0 for
// barrier and on one node. `root` of the rooted ones.
double nic_bytes(const JobShape& job, Collective collective, std::size_t bytes, int root);

}  // namespace plait::tuner
