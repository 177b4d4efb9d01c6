// What a rank has of the network: its rails, a worker on each, whom it has met there, and what it has measured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/layer.h"
#include "tl/ucx/rail_worker.h"
#include "tl/ucx/ucx_peer.h"
#include "topo/rails.h"

namespace plait::runtime {

// Made at the first communicator that may use them, and never destroyed: a peer may still read what was sent last.
struct OwnRails {
  OwnRails();
  // The guard must be held. Only what works is kept: the report asks each worker what it has carried.
  Result<RailWorker*> worker_on(std::uint64_t network, std::size_t peers);
  // Likewise: of a communicator, which no other has.
  std::uint64_t new_identity();

  std::mutex guard;
  std::uint64_t process = 0;                                     // a number that no other process, or rank, has
  std::vector<Rail> rails;                                       // those that may be used
  std::map<std::uint64_t, std::unique_ptr<RailWorker>> workers;  // by network
  std::map<std::uint64_t, std::shared_ptr<const UcxPeer>> peers;
  std::atomic<std::uint64_t> early_bytes{0};         // over sockets on the first rail, without its worker
  std::map<std::uint64_t, double> seconds_per_byte;  // by network, as far as measured
  std::map<std::uint64_t, double> exact;             // likewise, measured for long
  std::uint64_t communicators = 0;
};

// Of a process that is one rank.
OwnRails& process_rails();

// Of a rank that may share its process with others. A message does not say whom in a process it is for, so that each
// has workers of its own. Taken at the first use, the process's first, and given back for the next such rank: its
// channels are gone by then.
class RailsOfRank {
 public:
  RailsOfRank() = default;
  ~RailsOfRank();
  RailsOfRank(const RailsOfRank&) = delete;
  RailsOfRank& operator=(const RailsOfRank&) = delete;
  // Thread-safe.
  OwnRails& get();

 private:
  std::once_flag once_;
  OwnRails* taken_ = nullptr;
};

// The first rail of this process.
struct FirstRail {
  std::string name;
  std::uint64_t network = 0;  // hash of Rail::network
  std::uint32_t address = 0;  // IPv4 in host order
  std::atomic<std::uint64_t>* bytes_sent =
      nullptr;  // counts what goes over it without UCX; lives as long as the process
};
// Not there where the first rail is no Ethernet interface. Thread-safe; loads no UCX.
std::optional<FirstRail> first_ethernet_rail();

// At which others find out whether this process's host answers (tl/peer_watch.h); 0: there is none. Thread-safe.
std::uint16_t own_probe_port();

// What each rail of this process has carried, for the report: its name and the payload that it sent.
struct RailTraffic {
  std::string name;
  std::uint64_t bytes = 0;
};
std::vector<RailTraffic> rail_traffic();

}  // namespace plait::runtime
