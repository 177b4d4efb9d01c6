// The one step of a set-up for all channels that have a connector.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/channel_kind.h"
#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "tl/channel.h"
#include "tl/connector.h"

namespace plait::runtime {

// Of one set-up. Not thread-safe.
class ConnectedChannels {
 public:
  ConnectedChannels() = default;  // without any
  explicit ConnectedChannels(std::vector<std::unique_ptr<Connector>> connectors);

  // nullptr: the kind has no connector.
  const Connector* connector(ChannelKind kind) const { return slots_[index_of(kind)].connector.get(); }

  // Of a kind that has a connector; collective where that has offers: an exchange, and where all ranks have one an
  // agreement. True on all ranks, or false on all. Fails only where `oob` does.
  Result<bool> connect(ChannelKind kind, Oob& oob, const Surroundings& surroundings);
  // Once it is connected: the channel, before it is taken. nullptr: it opens when it is taken.
  Channel* opened(ChannelKind kind) const { return slots_[index_of(kind)].channel.get(); }
  // Of a kind that is connected, once.
  Result<std::unique_ptr<Channel>> take(ChannelKind kind, const Surroundings& surroundings);
  // All that is left of it.
  void leave(ChannelKind kind) { slots_[index_of(kind)] = {}; }

 private:
  struct Slot {
    std::unique_ptr<Connector> connector;
    std::unique_ptr<Channel> channel;
  };
  std::array<Slot, channel_kinds> slots_;  // by ChannelKind
};

}  // namespace plait::runtime
