// What the places of a job's ranks cost it, whatever it calls: ranks that are free to move, and levels of the machine
// that hold unequal numbers of them. Pure.
#pragma once

#include <string>
#include <vector>

#include "tuner/text/launcher_options.h"

namespace plait::tuner {

// Where a rank of MPI_COMM_WORLD runs; the indices are Location's, -1 where they are not known.
struct RankPlace {
  int node = 0;  // any number
  int package = -1, numa = -1, l3 = -1, core = -1;
  int cores_allowed = 1;  // processing units that the rank may run on
};

// Sentences, each with the option of the launcher that mends it:
// "binding: 8 ranks may move between the cores of their node: mpirun --bind-to core keeps each on its own";
// "mapping: 1 to 3 ranks on a node, 2 on each would be even: mpirun --map-by ppr:2:node". Of what lies within a node,
// that is said of the outermost uneven level, and nothing where the ranks cannot be dealt out evenly.
std::vector<std::string> mapping_advice(const std::vector<RankPlace>& ranks, Launcher launcher);

}  // namespace plait::tuner
