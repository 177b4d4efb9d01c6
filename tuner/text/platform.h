// A simulated machine's network: what a file of SimGrid's says of it, what plans are chosen by there, and what it
// leaves a collective at least. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/machine.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

enum class Topology : std::uint8_t { flat, fat_tree, dragonfly, torus };

// Of equal nodes behind one kind of links.
struct Platform {
  Topology topology = Topology::flat;
  std::string id;      // "fat-tree"
  std::string prefix;  // of a node's name: "node-"
  std::string suffix;  // behind its number
  int first = 0;       // the first node's number
  int nodes = 0;
  double link_rate = 0;  // bytes a second in each direction: of a node's network card, too
  double link_latency_s = 0;
  double near_rate = 0;  // between two ranks of a node
  double near_latency_s = 0;
  // Nodes that hang together: on a leaf switch of a fat tree, in a group of a dragonfly, in a row of a torus; 0: the
  // network has no such groups.
  int group = 0;
  double group_latency_s = 0;  // between nodes of a group
  double group_rate = 0;       // bytes a second that all nodes of a group together send to others
  double far_latency_s = 0;    // between nodes of different groups
  plan::Meeting node_meeting = {}, group_meeting = {};

  std::string node_name(int node) const { return prefix + std::to_string(first + node) + suffix; }
};

// "fat-tree"
std::string_view name(Topology topology);
std::optional<Topology> topology_named(std::string_view name);

// The cluster of a platform file (SimGrid's DTD 4.1), which must have one, of FAT_TREE with two levels, DRAGONFLY,
// TORUS or no topology. Fails (invalid) with what is wrong with it.
Result<Platform> read_platform(std::string_view text);

// Whether SimGrid (3.32) means by it one of the links that the nodes share: between the switches of a fat tree of so
// many nodes, between the groups of a dragonfly, any between nodes of a torus.
bool is_global_link(std::string_view name, Topology topology, int nodes);

// Seconds in which a processor posts, or takes, a message (o of LogGP): over the network, where Zambre et al. (Breaking
// Band, ICPP '19) find about a quarter of a microsecond for MPI over EDR InfiniBand; and within a node, the planner's
// own figure (plan/model/machine.cpp).
inline constexpr double message_overhead_s = 0.25e-6, near_overhead_s = 0.05e-6;

// What the planner knows of the links.
Machine machine_of(const Platform& platform);

// Where a job's ranks are: rank r on node r / ranks_per_node.
struct PlatformJob {
  int nodes = 1, ranks_per_node = 1;
  int ranks() const { return nodes * ranks_per_node; }
};

// Seconds that no algorithm can do without: of the bytes that the busiest network card, or the busiest group's links,
// must send or take. `bytes`: of the vector (bcast, reduce, allreduce), of all ranks' together (allgather,
// reduce_scatter_block), of one pair's message (alltoall).
double least_seconds(Collective collective, std::size_t bytes, const PlatformJob& job, const Platform& platform);

}  // namespace plait::tuner
