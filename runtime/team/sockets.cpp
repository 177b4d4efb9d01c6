#include "runtime/team/sockets.h"

#include <algorithm>
#include <exception>

#include "core/log.h"
#include "runtime/oob/oob.h"
#include "tl/split_channel.h"

namespace plait::runtime {
namespace {

// With several rails only messages that UCX would not cut.
constexpr std::uint64_t short_bytes = 128 * 1024, short_bytes_with_rails = 1024;

}  // namespace

Status listen_for(Sockets& sockets, ListenerEntry& mine, std::uint32_t address, std::size_t distant) {
  if (Status status = fill_random(mine.key); !status.ok()) return status;
  if (!sockets.descriptors.take(distant + 1)) return {Code::unavailable, "tcp: too many files would be open"};
  Result<Socket> made = listen_at(address);
  if (!made.ok()) return made.status();
  const Result<Endpoint> endpoint = endpoint_of(*made);
  if (!endpoint.ok()) return endpoint.status();
  mine.endpoint = *endpoint;
  mine.probe_port = own_probe_port();
  sockets.listener = std::move(*made);
  return {};
}

void add_peer(Sockets& sockets, const ListenerEntry& entry, std::string host) {
  sockets.peers.push_back({entry.endpoint, std::move(host), static_cast<std::uint16_t>(entry.probe_port)});
}

Result<Sockets> open_sockets(Oob& oob, int rank, std::size_t distant, const RailNetwork& rails) {
  Sockets sockets;
  const std::vector<std::uint32_t> addresses = rails.addresses();
  if (addresses.empty()) return sockets;  // on all ranks alike
  ListenerEntry mine;
  try {  // what this rank throws must not keep it from the exchange
    const Status listening = listen_for(sockets, mine, addresses[static_cast<std::size_t>(rank)], distant);
    if (!listening.ok()) debug("set-up: " + listening.message());
  } catch (const std::exception& exception) {
    debug(exception.what());
  }
  std::vector<ListenerEntry> entries(addresses.size());
  if (Status met = oob.gather_all(&mine, sizeof mine, entries.data(), "exchange their sockets"); !met.ok()) return met;
  if (std::ranges::any_of(entries, [](const ListenerEntry& entry) { return entry.endpoint.port == 0; }))
    return Sockets();
  sockets.key = entries.front().key;
  for (std::size_t peer = 0; peer < entries.size(); ++peer)
    add_peer(sockets, entries[peer], rails.host_of(static_cast<int>(peer)));
  return sockets;
}

std::unique_ptr<Channel> with_sockets(Sockets& sockets, int rank, const RailNetwork& rails,
                                      std::unique_ptr<Channel> long_messages) {
  return make_split_channel(
      make_tcp_channel(
          std::move(sockets.listener), std::move(sockets.peers),
          {.rank = rank, .key = sockets.key, .rail = rails.fastest_name(), .bytes_sent = rails.socket_bytes()}),
      std::move(long_messages), rails.rails() > 1 ? short_bytes_with_rails : short_bytes);
}

}  // namespace plait::runtime
