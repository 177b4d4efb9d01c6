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
  void set(ChannelKind kind, std::vector<int> groups) { groups_[index_of(kind)] = std::move(groups); }

  // Whether it connects ranks that no single one of `nearer` does.
  bool adds(ChannelKind kind, ChannelSet nearer) const;
  // The first of `kinds` that connects every rank with each other; none: there is no such.
  std::optional<ChannelKind> connecting_all(ChannelSet kinds) const;
  // The first of `used` that connects two ranks has their messages. Precondition: one of them connects all.
  Routes routes(ChannelSet used) const;

 private:
  std::array<std::vector<int>, channel_kinds> groups_;  // by ChannelKind
};

}  // namespace plait::runtime
