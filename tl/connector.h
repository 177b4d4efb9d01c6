// What a communicator's set-up asks of a channel that takes no step of its own there: which ranks it would connect,
// what they tell each other for that, and the channel. Each channel's is in its folder; which there are stands in
// runtime/team/connectors.cpp, a line each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/channel_kind.h"
#include "core/status.h"
#include "tl/channel.h"
#include "tl/layer.h"
#include "topo/hierarchy.h"
#include "topo/location.h"

namespace plait::tl {

// Of a communicator: but for the own rank the same on all of its ranks. The hierarchy and the locations are the
// set-up's.
struct Surroundings {
  int rank;
  const Hierarchy& hierarchy;
  std::span<const Location> locations;  // by rank
  std::uint64_t token;                  // tells the communicator from all others of the job, earlier ones included
};

// The ranks of each node, or all of them where the kind crosses nodes: as Connector::groups().
std::vector<int> usual_groups(ChannelKind kind, const Hierarchy& hierarchy);

// Of one kind, for one set-up of one communicator: it may hold between the calls what it has offered. The calls come in
// this order, each once. What they throw, for lack of memory, counts as a failure here.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual ChannelKind kind() const = 0;

  // By rank: the group whose ranks it would connect with each other; in none: -1. Empty: it is of no use to these
  // ranks. None: the usual ones, without a list of all ranks. All ranks come to the same, without asking each other.
  virtual std::optional<std::vector<int>> groups(const Surroundings&) const { return {}; }

  // How much each rank has to tell all others beforehand, the same on all of them. 0: nothing. Then the ranks do not
  // ask each other whether all of them could open it, and it is taken to work: where it does not, the set-up fails.
  virtual std::size_t offer_bytes() const { return 0; }
  // This rank's, in memory of zeros. Where it has none, no rank uses the channel.
  virtual Status offer(const Surroundings&, std::span<std::byte> /* mine */) { return {}; }
  // From what all ranks offer, in their order. Does not wait for other ranks: one may fail here, and then no rank uses
  // the channel; those that are open are destroyed without a message. The channel outlives the connector.
  virtual Result<std::unique_ptr<Channel>> open(const Surroundings& surroundings,
                                                std::span<const std::byte> offers) = 0;
};

// The offers of all ranks, each the bytes of an `Offer`.
template <class Offer>
std::vector<Offer> offers_as(std::span<const std::byte> offers) {
  std::vector<Offer> made(offers.size() / sizeof(Offer));
  std::memcpy(made.data(), offers.data(), made.size() * sizeof(Offer));
  return made;
}

}  // namespace plait::tl
