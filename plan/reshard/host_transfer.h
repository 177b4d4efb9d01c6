// What hosts send each other in a resharding, and when.
#pragma once

#include <cstdint>
#include <vector>

namespace plait::plan::reshard {

struct Transfer {
  double seconds = 0;           // positive
  std::vector<int> senders;     // hosts that could send it; ascending, not empty
  std::vector<int> receivers;   // hosts that receive it; not empty
  std::vector<int> forwarders;  // those of them that send as well
};

// Indices are those of the list of transfers.
struct HostSchedule {
  std::vector<int> sender;    // host
  std::vector<int> order;     // indices, by begin
  std::vector<double> begin;  // seconds
  double seconds = 0;         // until the last transfer ends
};

// Counted in steps of work, not in time, so that all ranks find the same.
struct SearchBudget {
  std::uint64_t depth_first_steps = 400'000;  // a few ns each
  std::uint64_t greedy_steps = 600'000;
  std::uint64_t seed = 1;
};

}  // namespace plait::plan::reshard
