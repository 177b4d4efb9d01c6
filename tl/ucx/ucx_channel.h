// The channel over UCX: tagged messages over one or more rails.
//
// A message bound to no rail is cut in proportion to the rails' rates, if it is long; shorter ones are dealt out whole,
// and the shortest take the fastest rail. Both sides follow the same rule. Long parts travel in pieces, so that a
// reduction overlaps with arrival.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tl/channel.h"
#include "tl/ucx/message_tag.h"
#include "tl/ucx/ucx_peer.h"

namespace plait::tl {

// Ranks of a communicator: tags have so much room.
inline constexpr std::size_t most_ucx_ranks = std::size_t{1} << rank_bits;

struct UcxChannelOptions {
  std::uint64_t communicator = 0;  // 44 bits, agreed on, so that communicators that share processes are told apart
  int rank = 0;
  std::vector<double> weights = {};  // of the rails, agreed on; empty: all the same
  std::size_t fragment_bytes = 60 * 1024;
  int window = 8;                       // fragments' bytes under way to or from one peer over one rail
  std::size_t deal_from = 1024;         // shorter messages take the fastest rail
  std::size_t stripe_from = 32 * 1024;  // longer ones are cut over all rails
  bool peers_answer = false;            // all ranks saw that probing works (peer_watch.h)
  // How long a channel that gives up waits for its own sends to leave, before it cuts the connections that hold them.
  std::uint64_t patience_ns = 5'000'000'000;
};

// `peers` by rank; the own entry may be null. Not thread-safe itself; the workers may be shared with other threads.
std::unique_ptr<Channel> make_ucx_channel(std::vector<UcxRail> rails, std::vector<std::shared_ptr<const UcxPeer>> peers,
                                          UcxChannelOptions options);

// The part of a message of `bytes` that rail `rail` carries: [begin, end). Cut between elements.
struct RailShare {
  std::uint64_t begin = 0, end = 0;
};
RailShare rail_share(std::uint64_t bytes, std::size_t element_bytes, std::span<const double> weights, int rail);

}  // namespace plait::tl
