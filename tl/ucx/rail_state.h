// What a channel has under way on each of its rails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tl/channel.h"
#include "tl/staging_pool.h"
#include "tl/ucx/rail_worker.h"
#include "tl/ucx/ucx_peer.h"

namespace plait::tl {

// One part of a message under way on a rail.
struct Piece {
  Transfer* transfer;
  std::int32_t peer;  // the transfer's: it is gone when a channel is destroyed in the middle of it
  bool sends;
  void* request;
  std::uint64_t offset;
  std::size_t bytes;
  StagingPool::Buffer staging;  // empty: in place
  bool confirmed = false;       // a send that is complete when the peer has taken it
  std::uint32_t generation = 0;
};

// What of a lane goes over one rail: it walks the lane's messages on its own.
struct Stream {
  Transfer* current = nullptr;  // the first message of which it has still to post something
  std::uint64_t posted = 0;     // bytes of its share of that message
  int pieces = 0;               // under way
  std::uint64_t bytes = 0;      // of these
  bool held = false;            // until the connection is ready
};

// Not known to have failed.
inline bool alive(const UcxEndpoint& endpoint) {
  return endpoint.handle != nullptr && endpoint.failure.load(std::memory_order_relaxed) == UCS_OK;
}

struct RailState {
  UcxRail rail;
  std::vector<UcxEndpoint*> endpoints;  // by rank; nullptr: not connected yet
  std::vector<Piece> pieces;
  std::vector<Stream*> held;
};

}  // namespace plait::tl
