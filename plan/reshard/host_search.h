// The searches behind Scheduler::search. Both keep what is better than the `best` they are given, and stop where it is
// as good as `bound`. Internal to plan/reshard.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/reshard/host_transfer.h"

namespace plait::plan::reshard {

// When the sides of the hosts are free, seconds.
class FreeTimes {
 public:
  explicit FreeTimes(int hosts) : send_(static_cast<std::size_t>(hosts)), receive_(send_) {}

  double start(const Transfer& transfer, int sender) const {
    double start = send_[static_cast<std::size_t>(sender)];
    for (const int host : transfer.receivers) start = std::max(start, receive_[static_cast<std::size_t>(host)]);
    for (const int host : transfer.forwarders) start = std::max(start, send_[static_cast<std::size_t>(host)]);
    return start;
  }
  // Returns when it ends.
  double take(const Transfer& transfer, int sender, double begin) {
    const double end = begin + transfer.seconds;
    send_[static_cast<std::size_t>(sender)] = end;
    for (const int host : transfer.receivers) receive_[static_cast<std::size_t>(host)] = end;
    for (const int host : transfer.forwarders) send_[static_cast<std::size_t>(host)] = end;
    return end;
  }
  double send(int host) const { return send_[static_cast<std::size_t>(host)]; }
  double receive(int host) const { return receive_[static_cast<std::size_t>(host)]; }

 private:
  std::vector<double> send_, receive_;
};

// Randomised greedy selection (section 3.2): of the transfers that can begin at the earliest time, those whose hosts
// have the most left to do go first, with some noise; again and again with other noise.
void greedy_search(const std::vector<Transfer>& transfers, int hosts, double bound, const SearchBudget& budget,
                   HostSchedule& best);

// All orders and senders, by order of beginning, where what is left to do on some side already takes too long cut off.
// Exact where it comes to its end within the budget.
void depth_first_search(const std::vector<Transfer>& transfers, int hosts, double bound, const SearchBudget& budget,
                        HostSchedule& best);

}  // namespace plait::plan::reshard
