// Which host sends each transfer of a resharding, and in which order (section 3.2 of the paper, equations 1 to 3).
//
// A transfer occupies its sender's send side and its receivers' receive sides for its whole duration; those that pass
// it on give their send sides as well. No two transfers share a side at a time; sending and receiving at once is
// allowed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/reshard/host_transfer.h"

namespace plait::plan::reshard {

enum class Scheduler : std::uint8_t {
  naive,         // each by its first sender, in the order of the list
  load_balance,  // longest first, each by the sender with the least to send; then in the order of the list
  search,        // the best of an ensemble: the two above, depth-first search, randomised greedy selection
};
std::string_view name(Scheduler scheduler);

// All pure and deterministic. `hosts`: their number.
HostSchedule schedule(const std::vector<Transfer>& transfers, int hosts, Scheduler scheduler,
                      const SearchBudget& budget = {});

// No schedule ends earlier: for each host what it must receive; for each set of senders what only they can send, in
// whole transfers; and the longest transfer.
double lower_bound(const std::vector<Transfer>& transfers, int hosts);

// The same of transfers that any sender may send in parts, and any receiver may pass on: what the busiest port carries
// at least, whoever sends what to whom. Forwarders do not count.
double port_bound(const std::vector<Transfer>& transfers, int hosts);

}  // namespace plait::plan::reshard
