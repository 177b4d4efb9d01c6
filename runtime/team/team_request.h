// What the ranks of a team ask of its set-up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/channel_kind.h"
#include "runtime/layer.h"
#include "runtime/team/extent.h"
#include "runtime/team/neighborhood.h"
#include "runtime/team/own_rails.h"
#include "topo/location.h"

namespace plait::runtime {

// The same on all of them but for the location and the neighbours.
struct TeamRequest {
  TeamExtent extent = TeamExtent::all_calls;
  std::vector<std::string> channels;       // that may be used; empty: those of PLAIT_CHANNELS
  const char* grid = "";                   // interned: ReportKey::grid
  std::string name;                        // for the trace; empty: none
  void (*move_operations_on)() = [] {};    // what else this process is to do while it waits
  std::optional<NeighborLists> neighbors;  // of a communicator that has a topology: on all ranks
  std::optional<Location> location;        // where this rank is said to be; else where its process runs
  RailsOfRank* rails = nullptr;            // outlives the team; nullptr: this process is one rank
};

// Whether the list names it, or PLAIT_CHANNELS where the list is empty.
bool may_use(const std::vector<std::string>& channels, ChannelKind channel);

}  // namespace plait::runtime
