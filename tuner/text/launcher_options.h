// How the job was started, so that advice can name the option that changes it.
#pragma once

#include <string>
#include <string_view>

namespace plait::tuner {

enum class Launcher { openmpi, hydra };

// From what the MPI library calls itself: MPICH and those that are made from it come with Hydra.
Launcher launcher_of(std::string_view mpi);

// Consecutive ranks on each node, of which there are `ranks_a_node`; ranks dealt out to the nodes in turn.
std::string by_slot(Launcher launcher, int ranks_a_node);
std::string by_node(Launcher launcher);
// `count` consecutive ranks on each node.
std::string ranks_a_node(Launcher launcher, int count);
// Each rank on a core of its own.
std::string bound_to_cores(Launcher launcher);
// Ranks dealt out in turn to a node's "package", "numa" or "l3".
std::string dealt_out_to(Launcher launcher, std::string_view level);

}  // namespace plait::tuner
