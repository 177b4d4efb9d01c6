#include "plan/reshard/host_schedule.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "plan/reshard/host_search.h"

namespace plait::plan::reshard {

namespace {

constexpr double equal_within = 1 + 1e-9;

// Each by the sender that has the least to send, the longest first: optimal up to the length of one transfer.
std::vector<int> balanced_senders(const std::vector<Transfer>& transfers, int hosts) {
  std::vector<int> longest_first(transfers.size());
  std::iota(longest_first.begin(), longest_first.end(), 0);
  std::ranges::stable_sort(longest_first, [&](int a, int b) {
    const Transfer &one = transfers[static_cast<std::size_t>(a)], &other = transfers[static_cast<std::size_t>(b)];
    if (one.seconds != other.seconds) return one.seconds > other.seconds;
    return one.senders.size() < other.senders.size();
  });
  std::vector<double> load(static_cast<std::size_t>(hosts));
  std::vector<int> sender(transfers.size());
  for (const int index : longest_first) {
    const Transfer& transfer = transfers[static_cast<std::size_t>(index)];
    const int chosen =
        *std::ranges::min_element(transfer.senders, {}, [&](int host) { return load[static_cast<std::size_t>(host)]; });
    load[static_cast<std::size_t>(chosen)] += transfer.seconds;
    sender[static_cast<std::size_t>(index)] = chosen;
  }
  return sender;
}

// In the order of the list, each as early as its hosts are free.
HostSchedule in_list_order(const std::vector<Transfer>& transfers, int hosts, std::vector<int> sender) {
  HostSchedule made;
  made.sender = std::move(sender);
  made.begin.resize(transfers.size());
  FreeTimes free(hosts);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    made.begin[i] = free.start(transfers[i], made.sender[i]);
    made.seconds = std::max(made.seconds, free.take(transfers[i], made.sender[i], made.begin[i]));
  }
  made.order.resize(transfers.size());
  std::iota(made.order.begin(), made.order.end(), 0);
  std::ranges::stable_sort(made.order, {}, [&](int i) { return made.begin[static_cast<std::size_t>(i)]; });
  return made;
}

HostSchedule naive(const std::vector<Transfer>& transfers, int hosts) {
  std::vector<int> sender;
  for (const Transfer& transfer : transfers) sender.push_back(transfer.senders.front());
  return in_list_order(transfers, hosts, std::move(sender));
}

// ---- The lower bound

// `seconds` on `machines` that take one transfer at a time. Among the k * machines + 1 longest some machine has k + 1,
// which last at least as long as the k + 1 shortest of them.
double machines_bound(std::vector<double>& seconds, std::size_t machines) {
  std::ranges::sort(seconds, std::greater<>());
  double total = 0, bound = 0;
  for (const double one : seconds) total += one;
  for (std::size_t last = 0; last < seconds.size(); last += machines) {
    const std::size_t several = last / machines + 1;
    double sum = 0;
    if (several > last + 1) break;
    if (several * seconds[last] > bound || several < 64)
      for (std::size_t i = last + 1 - several; i <= last; ++i) sum += seconds[i];
    bound = std::max(bound, sum);
  }
  return std::max(bound, total / static_cast<double>(machines));
}

// Sets of senders worth a look: those of the transfers, and unions of them as long as there are few.
std::set<std::vector<int>> sender_sets(const std::vector<Transfer>& transfers) {
  constexpr std::size_t most_sets = 64;
  std::set<std::vector<int>> sets;
  std::vector<int> all;
  for (const Transfer& transfer : transfers) {
    sets.insert(transfer.senders);
    all.insert(all.end(), transfer.senders.begin(), transfer.senders.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const std::vector<std::vector<int>> single(sets.begin(), sets.end());
  for (const auto& one : single) {
    if (sets.size() > most_sets || single.size() > most_sets) break;
    const std::vector<std::vector<int>> known(sets.begin(), sets.end());
    for (const auto& other : known) {
      std::vector<int> both;
      std::ranges::set_union(one, other, std::back_inserter(both));
      sets.insert(std::move(both));
    }
  }
  sets.insert(std::move(all));
  return sets;
}

// `shared(seconds, n)`: how soon n hosts have sent what only they can send.
template <class Shared>
double senders_bound(const std::vector<Transfer>& transfers, const Shared& shared) {
  double bound = 0;
  for (const std::vector<int>& set : sender_sets(transfers)) {
    std::vector<double> within;
    for (const Transfer& transfer : transfers)
      if (std::ranges::includes(set, transfer.senders)) within.push_back(transfer.seconds);
    bound = std::max(bound, shared(within, set.size()));
  }
  return bound;
}

double evenly_shared(const std::vector<double>& seconds, std::size_t hosts) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(hosts);
}

}  // namespace

std::string_view name(Scheduler scheduler) {
  constexpr std::array<std::string_view, 3> names = {"naive", "load-balance", "search"};
  return names[static_cast<std::size_t>(scheduler)];
}

double lower_bound(const std::vector<Transfer>& transfers, int hosts) {
  if (transfers.empty()) return 0;
  std::vector<double> receive(static_cast<std::size_t>(hosts)), send(receive);
  for (const Transfer& transfer : transfers) {
    for (const int host : transfer.receivers) receive[static_cast<std::size_t>(host)] += transfer.seconds;
    for (const int host : transfer.forwarders) send[static_cast<std::size_t>(host)] += transfer.seconds;
    if (transfer.senders.size() == 1) send[static_cast<std::size_t>(transfer.senders.front())] += transfer.seconds;
  }
  const double sides = std::max(*std::ranges::max_element(receive), *std::ranges::max_element(send));
  return std::max(sides, senders_bound(transfers, machines_bound));
}

double port_bound(const std::vector<Transfer>& transfers, int hosts) {
  std::vector<double> receive(static_cast<std::size_t>(hosts));
  for (const Transfer& transfer : transfers)
    for (const int host : transfer.receivers) receive[static_cast<std::size_t>(host)] += transfer.seconds;
  const double busiest = receive.empty() ? 0 : *std::ranges::max_element(receive);
  return std::max(busiest, senders_bound(transfers, evenly_shared));
}

HostSchedule schedule(const std::vector<Transfer>& transfers, int hosts, Scheduler scheduler,
                      const SearchBudget& budget) {
  if (scheduler == Scheduler::naive) return naive(transfers, hosts);
  HostSchedule balanced = in_list_order(transfers, hosts, balanced_senders(transfers, hosts));
  if (scheduler == Scheduler::load_balance || transfers.empty()) return balanced;
  const double bound = lower_bound(transfers, hosts) * equal_within;
  HostSchedule best = naive(transfers, hosts);
  if (balanced.seconds < best.seconds) best = std::move(balanced);
  if (best.seconds > bound) greedy_search(transfers, hosts, bound, budget, best);
  if (best.seconds > bound) depth_first_search(transfers, hosts, bound, budget, best);
  return best;
}

}  // namespace plait::plan::reshard
