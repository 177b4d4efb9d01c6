// Plain sockets between a communicator's nodes, for short messages over Ethernet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/job/descriptor_share.h"
#include "runtime/layer.h"
#include "runtime/team/rail_network.h"
#include "tl/tcp/tcp_channel.h"

namespace plait::runtime {

// What a rank tells the others of its listener, over the host's messages: who can read those can be one of the ranks.
struct ListenerEntry {
  Endpoint endpoint;  // port 0: it does not listen
  std::uint32_t probe_port = 0;
  SharedKey key{};  // rank 0's counts: new for each communicator
};

// The listeners of all ranks.
struct Sockets {
  DescriptorShare descriptors;
  Socket listener;
  SharedKey key{};
  std::vector<TcpPeer> peers;  // by rank; empty where a rank cannot listen: UCX carries short messages as well then
};

// Waits for connections at a port of `address`; what to tell of it becomes `mine`. `distant`: as below.
Status listen_for(Sockets& sockets, ListenerEntry& mine, std::uint32_t address, std::size_t distant);

// The next rank's, in their order.
void add_peer(Sockets& sockets, const ListenerEntry& entry, std::string host);

// Collective. `distant`: the ranks that this one may come to be connected to. Fails only where the host does.
Result<Sockets> open_sockets(Oob& oob, int rank, std::size_t distant, const RailNetwork& rails);

// Short messages over `sockets`, which have peers, the others over `long_messages`.
std::unique_ptr<Channel> with_sockets(Sockets& sockets, int rank, const RailNetwork& rails,
                                      std::unique_ptr<Channel> long_messages);

}  // namespace plait::runtime
