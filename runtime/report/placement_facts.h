// What the report's file holds for `plait advise`, which says whether the ranks would better be elsewhere; and whether
// that is worth asking. Pure, and cheap: this runs at a job's end.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "plan/model/collective.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct PlacementFacts {
  // Of MPI_COMM_WORLD; the indices are Location's, -1 where they are not known.
  struct Rank {
    int node = 0;  // any number
    int package = -1, numa = -1, l3 = -1, core = -1;
    int cores_allowed = 1;  // processing units that the rank may run on
  };
  // Calls of one collective on the communicators that are rows of a process grid along the same axes.
  struct Row {
    std::string axes;  // text() of grid_axes() (plan/synthesis/process_grid.h)
    Collective collective = Collective::barrier;
    double calls = 0;  // on each of the communicators
    double bytes = 0;  // of a call, as payload_bytes() defines it; the mean
  };

  std::vector<Rank> ranks;              // by rank; empty where it is not known who is on which node
  double network_seconds_per_byte = 0;  // of a node's port; 0: not measured
  double ranks_per_core = 1;
  std::vector<Row> rows;
  bool accelerated = false;  // whether anything was: else nothing of ours would be faster
};

// Ranks of a node that may all move between its cores, nodes or their parts with unequal numbers of ranks, or rows of a
// grid that cross nodes. Linear in the ranks.
bool worth_asking(const PlacementFacts& facts);

// An object: "network_seconds_per_byte", "ranks_per_core"; "ranks", a list of [node, package, NUMA domain, L3 cache,
// core, processing units]; "rows", a list of objects with "axes" ("4@2,2@1": size@stride), "collective", "calls" and
// "bytes".
SortedJson placement_json(const PlacementFacts& facts);

// The line of the report. `file`: its own, that is to be asked about; empty where it is none.
std::string placement_question(const std::string& file);

}  // namespace plait::runtime
