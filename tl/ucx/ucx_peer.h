// Who is reached over UCX, and over which rails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tl/ucx/rail_worker.h"

namespace plait::tl {

// How to reach a process over the rails; shared by the channels of all communicators that it is in.
struct UcxPeer {
  struct OnRail {
    std::uint64_t network = 0;  // hash of Rail::network
    std::uint32_t address = 0;  // IPv4 in host order; 0: none
    std::string worker;         // RailWorker::address()
  };
  std::uint64_t process = 0;  // a number that no other process of the job has
  std::string host;           // for people
  std::uint16_t probe_port = 0;
  std::vector<OnRail> rails;
};

// One of the rails that the ranks of the communicator agreed on, in their order.
struct UcxRail {
  RailWorker* worker = nullptr;
  std::uint64_t network = 0;  // finds the peers' addresses on it
};

}  // namespace plait::tl
