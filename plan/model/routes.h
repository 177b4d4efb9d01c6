// Which channel connects each pair of a communicator's ranks, and what can be done over it: a value that the set-up
// makes of what it has connected. All else asks it, and knows no channel by its name.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/channel_kind.h"
#include "plan/model/layer.h"
#include "topo/hierarchy.h"

namespace plait::plan {

class Routes {
 public:
  // What connects ranks that nothing nearer does: between nodes the network.
  explicit Routes(ChannelKind beyond = ChannelKind::mpi);

  // The ranks of one group (`group_of`: by rank; in none: -1) talk over `kind`, but for those that are connected
  // already: the nearest groups come first.
  void connect(std::span<const int> group_of, ChannelKind kind);
  // Likewise the ranks of each node, whose numbers stay in the hierarchy's memory, and are told apart by its hash.
  void connect_nodes(const Hierarchy& hierarchy, ChannelKind kind);

  // Of two different ranks. Without allocation.
  ChannelKind between(int a, int b) const {
    for (const Near& near : near_)
      if (near.joins(a, b)) return near.kind;
    return beyond_;
  }
  ChannelKind beyond() const { return beyond_; }

  ChannelSet kinds() const { return kinds_; }
  // Whether some messages only move where a thread may call the host.
  bool need_host() const { return kinds_.any(&ChannelTraits::needs_host); }

  // Whose shared-memory collectives the ranks of a node have together; none: they have no such.
  std::optional<ChannelKind> shared_memory() const { return shared_memory_; }

  // Adds what tells these routes from others, as bytes; those that were made otherwise may differ where all messages go
  // the same ways.
  void append_key(std::string& key) const;

 private:
  struct Near {
    std::shared_ptr<const void> memory;  // of the groups; a copy of the routes shares it
    std::span<const int> group_of;
    ChannelKind kind;
    std::span<const int> print;  // a hash of the groups, in that memory; empty: nobody has computed one
    bool joins(int a, int b) const {
      const int group = group_of[static_cast<std::size_t>(a)];
      return group >= 0 && group == group_of[static_cast<std::size_t>(b)];
    }
  };
  void take(ChannelKind kind);

  std::vector<Near> near_;  // the nearest first
  ChannelKind beyond_;
  ChannelSet kinds_;
  std::optional<ChannelKind> shared_memory_;
};

// `near` within nodes, `beyond` between them.
Routes routes_by_node(std::span<const int> node_of, ChannelKind near, ChannelKind beyond);
Routes routes_by_node(const Hierarchy& hierarchy, ChannelKind near, ChannelKind beyond);
// Shared memory and the host's messages.
inline Routes usual_routes(const Hierarchy& hierarchy) {
  return routes_by_node(hierarchy, ChannelKind::shm, ChannelKind::mpi);
}

}  // namespace plait::plan
