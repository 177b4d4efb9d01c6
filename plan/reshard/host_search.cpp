#include "plan/reshard/host_search.h"

#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace plait::plan::reshard {

namespace {

// SplitMix64: the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double unit() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// Transfers between the same hosts that last equally long: which of them goes first does not matter.
struct Kind {
  const Transfer* transfer = nullptr;
  std::vector<int> members;  // indices
};

std::vector<Kind> kinds_of(const std::vector<Transfer>& transfers) {
  std::map<std::tuple<double, std::vector<int>, std::vector<int>, std::vector<int>>, std::size_t> known;
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& one = transfers[i];
    const auto [entry, is_new] =
        known.try_emplace({one.seconds, one.senders, one.receivers, one.forwarders}, kinds.size());
    if (is_new) kinds.push_back({&one, {}});
    kinds[entry->second].members.push_back(static_cast<int>(i));
  }
  return kinds;
}

// What is left to do on each side: all that must be received, and of what can be sent by several an equal share each.
struct Remaining {
  std::vector<double> send, receive;

  explicit Remaining(int hosts) : send(static_cast<std::size_t>(hosts)), receive(send) {}
  void add(const Transfer& transfer, double times) {
    const double seconds = transfer.seconds * times;
    for (const int host : transfer.receivers) receive[static_cast<std::size_t>(host)] += seconds;
    for (const int host : transfer.forwarders) send[static_cast<std::size_t>(host)] += seconds;
    for (const int host : transfer.senders)
      send[static_cast<std::size_t>(host)] += seconds / static_cast<double>(transfer.senders.size());
  }
};

// Orders as they are built up: kind and sender of each transfer.
struct Placed {
  std::size_t kind;
  int sender;
  double begin;
};

HostSchedule as_schedule(const std::vector<Kind>& kinds, const std::vector<Placed>& placed, std::size_t transfers,
                         double seconds) {
  HostSchedule made;
  made.seconds = seconds;
  made.sender.resize(transfers);
  made.begin.resize(transfers);
  std::vector<std::size_t> used(kinds.size());
  for (const Placed& one : placed) {
    const int index = kinds[one.kind].members[used[one.kind]++];
    made.sender[static_cast<std::size_t>(index)] = one.sender;
    made.begin[static_cast<std::size_t>(index)] = one.begin;
    made.order.push_back(index);
  }
  std::ranges::stable_sort(made.order, {}, [&](int i) { return made.begin[static_cast<std::size_t>(i)]; });
  return made;
}

// ---- Greedy

class Greedy {
 public:
  Greedy(const std::vector<Kind>& kinds, int hosts, std::size_t transfers, std::uint64_t seed)
      : kinds_(kinds), hosts_(hosts), transfers_(transfers), random_(seed) {}

  // One schedule; `noise` 0: none. `steps` grows by the work. False where it cannot be better than `best`.
  bool run(double noise, double best, std::uint64_t& steps, std::vector<Placed>& placed, double& seconds) {
    FreeTimes free(hosts_);
    Remaining remaining(hosts_);
    std::vector<std::size_t> left;
    for (const Kind& kind : kinds_) {
      left.push_back(kind.members.size());
      remaining.add(*kind.transfer, static_cast<double>(kind.members.size()));
    }
    placed.clear();
    seconds = 0;
    while (placed.size() < transfers_) {
      const Placed next = choose(free, remaining, left, noise, steps);
      const Transfer& transfer = *kinds_[next.kind].transfer;
      seconds = std::max(seconds, free.take(transfer, next.sender, next.begin));
      if (seconds >= best) return false;
      --left[next.kind];
      remaining.add(transfer, -1);
      placed.push_back(next);
    }
    return true;
  }

 private:
  // The most pressing of those that can begin first.
  Placed choose(const FreeTimes& free, const Remaining& remaining, const std::vector<std::size_t>& left, double noise,
                std::uint64_t& steps) {
    Placed best{0, 0, std::numeric_limits<double>::infinity()};
    double best_urgency = -1;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (left[k] == 0) continue;
      const Transfer& transfer = *kinds_[k].transfer;
      double receiving = 0;
      for (const int host : transfer.receivers)
        receiving = std::max(receiving, remaining.receive[static_cast<std::size_t>(host)]);
      for (const int sender : transfer.senders) {
        ++steps;
        const double begin = free.start(transfer, sender);
        if (begin > best.begin) continue;
        double urgency = urgency_of(transfer, sender, receiving, free, remaining);
        if (noise > 0) urgency *= 1 + noise * random_.unit();
        if (begin == best.begin && urgency <= best_urgency) continue;
        best = {k, sender, begin};
        best_urgency = urgency;
      }
    }
    return best;
  }

  // What is left on its busiest side; of the senders, the one with the least left, as long as others can do the rest.
  double urgency_of(const Transfer& transfer, int sender, double receiving, const FreeTimes& free,
                    const Remaining& remaining) const {
    const double sending = remaining.send[static_cast<std::size_t>(sender)];
    if (transfer.senders.size() == 1) return std::max(receiving, sending) + (receiving + sending) * 1e-3;
    const double rivals = sending + free.send(sender);
    return std::max(receiving, transfer.seconds) * (1 + 1e-3 / (1 + rivals / transfer.seconds));
  }

  const std::vector<Kind>& kinds_;
  int hosts_;
  std::size_t transfers_;
  Random random_;
};

// ---- Depth-first

class DepthFirst {
 public:
  DepthFirst(const std::vector<Kind>& kinds, int hosts, std::size_t transfers, double bound, std::uint64_t most_steps,
             HostSchedule& best)
      : kinds_(kinds), hosts_(hosts), transfers_(transfers), bound_(bound), most_steps_(most_steps), best_(best) {
    for (const Kind& kind : kinds) left_.push_back(kind.members.size());
  }

  void run() { descend(FreeTimes(hosts_), 0, 0); }

 private:
  bool over() const { return steps_ > most_steps_ || best_.seconds <= bound_; }

  void descend(const FreeTimes& free, double latest_begin, double seconds) {
    if (placed_.size() == transfers_) {
      if (seconds < best_.seconds) best_ = as_schedule(kinds_, placed_, transfers_, seconds);
      return;
    }
    if (over() || at_least(free, latest_begin, seconds) >= best_.seconds) return;
    for (const Placed& next : branches(free, latest_begin)) {
      const Transfer& transfer = *kinds_[next.kind].transfer;
      FreeTimes then = free;
      const double end = then.take(transfer, next.sender, next.begin);
      if (end >= best_.seconds) continue;
      --left_[next.kind];
      placed_.push_back(next);
      descend(then, next.begin, std::max(seconds, end));
      placed_.pop_back();
      ++left_[next.kind];
      if (over()) return;
    }
  }

  // Every schedule that begins nothing later than it could has an order of beginnings that never goes back. Earlier
  // beginnings first.
  std::vector<Placed> branches(const FreeTimes& free, double latest_begin) {
    std::vector<Placed> found;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (left_[k] == 0) continue;
      for (const int sender : kinds_[k].transfer->senders) {
        ++steps_;
        const double begin = free.start(*kinds_[k].transfer, sender);
        if (begin >= latest_begin) found.push_back({k, sender, begin});
      }
    }
    std::ranges::stable_sort(found, [&](const Placed& a, const Placed& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      return kinds_[a.kind].transfer->seconds > kinds_[b.kind].transfer->seconds;
    });
    return found;
  }

  // Of every schedule that goes on from here.
  double at_least(const FreeTimes& free, double latest_begin, double seconds) {
    Remaining forced(hosts_);
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (left_[k] == 0) continue;
      ++steps_;
      const Transfer& transfer = *kinds_[k].transfer;
      const double work = transfer.seconds * static_cast<double>(left_[k]);
      for (const int host : transfer.receivers) forced.receive[static_cast<std::size_t>(host)] += work;
      for (const int host : transfer.forwarders) forced.send[static_cast<std::size_t>(host)] += work;
      if (transfer.senders.size() == 1) forced.send[static_cast<std::size_t>(transfer.senders.front())] += work;
    }
    double least = seconds;
    for (int host = 0; host < hosts_; ++host) {
      const auto at = static_cast<std::size_t>(host);
      if (forced.receive[at] > 0)
        least = std::max(least, std::max(free.receive(host), latest_begin) + forced.receive[at]);
      if (forced.send[at] > 0) least = std::max(least, std::max(free.send(host), latest_begin) + forced.send[at]);
    }
    return least;
  }

  const std::vector<Kind>& kinds_;
  int hosts_;
  std::size_t transfers_;
  double bound_;
  std::uint64_t most_steps_;
  std::uint64_t steps_ = 0;
  std::vector<std::size_t> left_;
  std::vector<Placed> placed_;
  HostSchedule& best_;
};

}  // namespace

void greedy_search(const std::vector<Transfer>& transfers, int hosts, double bound, const SearchBudget& budget,
                   HostSchedule& best) {
  constexpr std::uint64_t most_of_one_run = 30'000'000;
  const std::vector<Kind> kinds = kinds_of(transfers);
  if (kinds.size() * transfers.size() > most_of_one_run) return;
  Greedy greedy(kinds, hosts, transfers.size(), budget.seed);
  std::vector<Placed> placed;
  std::uint64_t steps = 0;
  constexpr double levels_of_noise[] = {0, 0.05, 0.3, 1, 10};
  for (int run = 0; steps < budget.greedy_steps && best.seconds > bound; ++run) {
    double seconds = 0;
    const double noise = run == 0 ? 0 : levels_of_noise[1 + run % 4];
    if (greedy.run(noise, best.seconds, steps, placed, seconds) && seconds < best.seconds)
      best = as_schedule(kinds, placed, transfers.size(), seconds);
    ++steps;
  }
}

void depth_first_search(const std::vector<Transfer>& transfers, int hosts, double bound, const SearchBudget& budget,
                        HostSchedule& best) {
  constexpr std::size_t most_transfers = 64;  // a search of more comes nowhere near its end
  if (transfers.size() > most_transfers) return;
  const std::vector<Kind> kinds = kinds_of(transfers);
  DepthFirst(kinds, hosts, transfers.size(), bound, budget.depth_first_steps, best).run();
}

}  // namespace plait::plan::reshard
