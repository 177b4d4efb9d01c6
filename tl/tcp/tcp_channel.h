// The channel over plain sockets, for short messages over Ethernet: a glance is one system call for each peer that
// something is expected from, where UCX looks at its events first (docs/network.md has the figures).
//
// A connection carries the messages between two ranks of one communicator, in both directions, in order: four bytes of
// length, then the payload. The rank with the lower number connects, when it first has to do with the other one.
// Anybody on the network can connect: both ends prove that they know the communicator's key before any message
// (handshake.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tl/channel.h"
#include "tl/tcp/handshake.h"
#include "tl/tcp/reception.h"
#include "tl/tcp/socket.h"

namespace plait::tl {

struct TcpPeer {
  Endpoint endpoint;             // of its listener
  std::string host;              // for people
  std::uint16_t probe_port = 0;  // of its process (peer_watch.h); 0: none
};

struct TcpChannelOptions {
  int rank = 0;
  SharedKey key{};                                   // a secret of the communicator's ranks
  std::string rail;                                  // for people
  std::atomic<std::uint64_t>* bytes_sent = nullptr;  // counts payload. Not owned; nullptr: nobody wants to know
  ReceptionLimits limits = {};                       // on strangers
};

// `listener` is what this rank's entry in `peers` (by rank) names. Not thread-safe. Nothing is connected yet.
std::unique_ptr<Channel> make_tcp_channel(Socket listener, std::vector<TcpPeer> peers, TcpChannelOptions options);

}  // namespace plait::tl
