// Which ranks each of the channels that a communicator may use connects, and what of that the nearer ones leave to it.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/channel_kind.h"
#include "plan/model/routes.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Groups as Connector::groups() gives them; of kinds that were never set: none.
class ChannelGroups {
 public:
  void set(ChannelKind kind, std::vector<int> groups) { groups_[index_of(kind)] = Groups(std::move(groups)); }
  // The usual ones of that kind.
  void set_usual(ChannelKind kind, const Hierarchy& hierarchy) {
    groups_[index_of(kind)] = Groups(hierarchy, traits(kind).crosses_nodes);
  }

  // Whether it connects ranks that no single one of `nearer` does.
  bool adds(ChannelKind kind, ChannelSet nearer) const;
  // The first of `kinds` that connects every rank with each other; none: there is no such.
  std::optional<ChannelKind> connecting_all(ChannelSet kinds) const;
  // The first of `used` that connects two ranks has their messages. Precondition: one of them connects all.
  Routes routes(ChannelSet used) const;

 private:
  // Of one kind. The usual ones take no memory a rank.
  class Groups {
   public:
    Groups() = default;
    explicit Groups(std::vector<int> list) : list_(std::move(list)) {}
    Groups(const Hierarchy& hierarchy, bool one) : one_(one), hierarchy_(hierarchy) {}

    std::size_t ranks() const { return usual() ? static_cast<std::size_t>(hierarchy_.ranks()) : list_.size(); }
    // -1: in none.
    int of(std::size_t rank) const {
      if (!usual()) return list_[rank];
      return one_ ? 0 : hierarchy_.node_of(static_cast<int>(rank));
    }
    bool join_nothing() const;
    bool join_all() const;
    // Whether `other` joins all ranks that these join.
    bool joined_by(const Groups& other) const;
    void add_to(Routes& routes, ChannelKind kind) const;

   private:
    bool usual() const { return hierarchy_.ranks() > 0; }
    bool one_ = false;  // of all ranks, else one a node
    Hierarchy hierarchy_;
    std::vector<int> list_;  // by rank
  };
  std::array<Groups, channel_kinds> groups_;  // by ChannelKind
};

}  // namespace plait::runtime
