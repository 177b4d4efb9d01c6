// Senders and orders: against all orders by brute force, the lower bound on random cases, validity, time.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>
#include <set>

#include "plan/reshard/plan.h"
#include "tests/plan/reshard/random_task.h"

namespace plait::plan::reshard {
namespace {

constexpr unsigned seed = 20261122;
constexpr double rounding = 1 + 1e-9;

std::vector<Transfer> random_transfers(Random& random, int count, int hosts) {
  std::vector<Transfer> transfers;
  const bool alike = draw(random, 0, 1) == 0;
  for (int i = 0; i < count; ++i) {
    Transfer transfer{.seconds = alike ? 1.0 : draw(random, 1, 9), .senders = {}, .receivers = {}, .forwarders = {}};
    std::vector<int> all(static_cast<std::size_t>(hosts));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, random);
    const auto senders = draw(random, 1, hosts - 1);
    transfer.senders.assign(all.begin(), all.begin() + senders);
    std::ranges::sort(transfer.senders);
    transfer.receivers.assign(all.begin() + senders, all.begin() + draw(random, senders + 1, hosts));
    transfer.forwarders.assign(transfer.receivers.begin(), transfer.receivers.end() - 1);
    transfers.push_back(transfer);
  }
  return transfers;
}

// No side of a host serves two transfers at once, and the senders are those that can be.
void expect_valid(const std::vector<Transfer>& transfers, const HostSchedule& schedule) {
  ASSERT_EQ(schedule.order.size(), transfers.size());
  std::vector<int> sorted = schedule.order;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], static_cast<int>(i));
  double last = 0;
  const auto sides = [&](std::size_t i) {
    std::vector<int> used;  // sends even, receives odd
    used.push_back(2 * schedule.sender[i]);
    for (const int host : transfers[i].forwarders) used.push_back(2 * host);
    for (const int host : transfers[i].receivers) used.push_back(2 * host + 1);
    return used;
  };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    EXPECT_TRUE(std::ranges::binary_search(transfers[i].senders, schedule.sender[i]));
    last = std::max(last, schedule.begin[i] + transfers[i].seconds);
    for (std::size_t k = 0; k < i; ++k) {
      const bool apart = schedule.begin[i] >= (schedule.begin[k] + transfers[k].seconds) / rounding ||
                         schedule.begin[k] >= (schedule.begin[i] + transfers[i].seconds) / rounding;
      if (apart) continue;
      const std::vector<int> others = sides(k);
      for (const int side : sides(i)) EXPECT_EQ(std::ranges::count(others, side), 0) << i << " meets " << k;
    }
  }
  EXPECT_NEAR(schedule.seconds, last, 1e-6 * last);
}

// The best of all orders with all senders.
double brute_force(const std::vector<Transfer>& transfers, int hosts) {
  std::vector<int> order(transfers.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::size_t> choice(transfers.size(), 0);
  double best = 1e300;
  do {
    std::ranges::fill(choice, 0);
    for (;;) {
      std::vector<double> send(static_cast<std::size_t>(hosts)), receive(send);
      double end = 0;
      for (const int index : order) {
        const Transfer& transfer = transfers[static_cast<std::size_t>(index)];
        auto& sender = send[static_cast<std::size_t>(transfer.senders[choice[static_cast<std::size_t>(index)]])];
        double begin = sender;
        for (const int host : transfer.receivers) begin = std::max(begin, receive[static_cast<std::size_t>(host)]);
        for (const int host : transfer.forwarders) begin = std::max(begin, send[static_cast<std::size_t>(host)]);
        sender = begin + transfer.seconds;
        for (const int host : transfer.receivers) receive[static_cast<std::size_t>(host)] = sender;
        for (const int host : transfer.forwarders) send[static_cast<std::size_t>(host)] = sender;
        end = std::max(end, sender);
        if (end >= best) break;
      }
      best = std::min(best, end);
      std::size_t digit = 0;
      while (digit < choice.size() && ++choice[digit] == transfers[digit].senders.size()) choice[digit++] = 0;
      if (digit == choice.size()) break;
    }
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(HostSchedule, IsTheOptimumOfUpToSixTasks) {
  Random random(seed);
  for (int round = 0; round < 150; ++round) {
    const int hosts = draw(random, 2, 4), count = round % 3 == 0 ? 6 : draw(random, 1, 5);
    const std::vector<Transfer> transfers = random_transfers(random, count, hosts);
    const HostSchedule found = schedule(transfers, hosts, Scheduler::search);
    expect_valid(transfers, found);
    EXPECT_NEAR(found.seconds, brute_force(transfers, hosts), 1e-9) << "seed " << seed << ", round " << round;
    EXPECT_LE(lower_bound(transfers, hosts), found.seconds * rounding);
  }
}

TEST(HostSchedule, IsValidAndNeverWorseThanItsParts) {
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const int hosts = draw(random, 2, 8);
    const std::vector<Transfer> transfers = random_transfers(random, draw(random, 0, 40), hosts);
    SearchBudget little{.depth_first_steps = 20'000, .greedy_steps = 20'000, .seed = 3};
    const HostSchedule naive = schedule(transfers, hosts, Scheduler::naive);
    const HostSchedule balanced = schedule(transfers, hosts, Scheduler::load_balance);
    const HostSchedule found = schedule(transfers, hosts, Scheduler::search, little);
    for (const HostSchedule* one : {&naive, &balanced, &found}) expect_valid(transfers, *one);
    EXPECT_LE(found.seconds, std::min(naive.seconds, balanced.seconds));
    EXPECT_LE(lower_bound(transfers, hosts), found.seconds * rounding);
    const HostSchedule again = schedule(transfers, hosts, Scheduler::search, little);
    EXPECT_EQ(again.order, found.order);
    EXPECT_EQ(again.sender, found.sender);
  }
}

// Two source hosts with four tasks each for two destination hosts: in the order of the list one waits for the other.
TEST(HostSchedule, LetsSendersServeDifferentReceivers) {
  std::vector<Transfer> transfers;
  for (int sender = 0; sender < 2; ++sender)
    for (int receiver = 2; receiver < 4; ++receiver)
      for (int i = 0; i < 2; ++i) transfers.push_back({1.0, {sender}, {receiver}, {}});
  EXPECT_EQ(schedule(transfers, 4, Scheduler::naive).seconds, 6.0);
  EXPECT_EQ(schedule(transfers, 4, Scheduler::search).seconds, 4.0);
}

// Whole tensors between meshes of hosts, as programs have them.
struct RandomCase {
  Task task;
  std::vector<int> host_of;
};

RandomCase random_case(Random& random) {
  RandomCase made;
  const int per_host = draw(random, 1, 4), source_hosts = draw(random, 1, 4), destination_hosts = draw(random, 1, 4);
  const int source_ranks = per_host * source_hosts;
  made.task.source = consecutive_mesh({source_hosts, per_host}, 0);
  made.task.destination = consecutive_mesh({destination_hosts, per_host}, source_ranks);
  const auto dimensions = static_cast<std::size_t>(draw(random, 1, 3));
  for (std::size_t d = 0; d < dimensions; ++d) made.task.shape.push_back(draw(random, 64, 1024));
  made.task.source_spec = random_spec(random, dimensions, made.task.source);
  made.task.destination_spec = random_spec(random, dimensions, made.task.destination);
  made.task.element_bytes = 4;
  for (int rank = 0; rank < source_ranks + per_host * destination_hosts; ++rank)
    made.host_of.push_back(rank / per_host);
  return made;
}

TEST(HostSchedule, IsNearTheLowerBoundInMostCases) {
  Random random(seed);
  constexpr int cases = 1000;
  constexpr double near = 1.02;
  int good = 0;
  std::string worst;
  double worst_gap = 0;
  Options options;
  options.links.network_per_byte = 1e-9;
  for (int i = 0; i < cases; ++i) {
    const RandomCase one = random_case(random);
    const auto plan = make_plan(one.task, one.host_of, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_GE(plan->schedule.seconds * rounding, plan->lower_bound) << text(one.task);
    // The chunks on the way to the second host and those after it are no matter of the order.
    const double bound = lower_bound(plan->transfers, plan->hosts);
    const double gap = bound > 0 ? plan->schedule.seconds / bound : 1;
    good += gap <= near ? 1 : 0;
    if (gap > worst_gap) {
      worst_gap = gap;
      worst = text(one.task);
    }
  }
  RecordProperty("within_2_percent", good);
  std::printf("seed %u: %d of %d within 2 %% of the lower bound; the worst is %.3f of it: %s\n", seed, good, cases,
              worst_gap, worst.c_str());
  EXPECT_GE(good, cases * 95 / 100);
}

// ---- The physical bound

bool holds(const Box& box, const std::vector<std::int64_t>& element) {
  for (std::size_t d = 0; d < element.size(); ++d)
    if (element[d] < box.extent[d].begin || element[d] >= box.extent[d].end) return false;
  return true;
}

// Hosts of the ranks of a mesh that have this element.
std::set<int> hosts_with(const Mesh& mesh, const ShardingSpec& spec, const RandomCase& one,
                         const std::vector<std::int64_t>& element) {
  std::set<int> hosts;
  for (int place = 0; place < static_cast<int>(mesh.ranks.size()); ++place)
    if (holds(shard(mesh, spec, one.task.shape, place), element))
      hosts.insert(one.host_of[static_cast<std::size_t>(mesh.ranks[static_cast<std::size_t>(place)])]);
  return hosts;
}

// Bytes through the busiest port at least, element by element: into each host what it wants and has not; out of each
// set of hosts what only they have, shared evenly.
double bytes_by_elements(const RandomCase& one) {
  const auto& shape = one.task.shape;
  std::map<int, double> in;
  std::map<std::set<int>, double> out;
  std::vector<std::int64_t> element(shape.size(), 0);
  for (bool more = true; more;) {
    const auto have = hosts_with(one.task.source, one.task.source_spec, one, element);
    bool crosses = false;
    for (const int host : hosts_with(one.task.destination, one.task.destination_spec, one, element)) {
      if (have.contains(host)) continue;
      crosses = true;
      in[host] += static_cast<double>(one.task.element_bytes);
    }
    if (crosses) out[have] += static_cast<double>(one.task.element_bytes);
    std::size_t d = 0;
    while (d < shape.size() && ++element[d] == shape[d]) element[d++] = 0;
    more = d < shape.size();
  }
  double busiest = 0;
  for (const auto& [host, bytes] : in) busiest = std::max(busiest, bytes);
  const int hosts = one.host_of.back() + 1;
  for (unsigned set = 1; set < 1u << hosts; ++set) {
    double only = 0;
    for (const auto& [have, bytes] : out)
      if (std::ranges::all_of(have, [&](int host) { return (set >> host & 1) != 0; })) only += bytes;
    busiest = std::max(busiest, only / std::popcount(set));
  }
  return busiest;
}

TEST(PortBound, IsWhatTheBusiestPortCarriesWhateverThePlan) {
  Random random(seed);
  Options options;
  options.links.network_per_byte = 1;
  for (int round = 0; round < 60; ++round) {
    RandomCase one = random_case(random);
    for (std::int64_t& length : one.task.shape) length = draw(random, 1, 12);
    const auto plan = make_plan(one.task, one.host_of, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_NEAR(plan->lower_bound, bytes_by_elements(one), 1e-6) << "seed " << seed << ": " << text(one.task);
  }
}

// Three slices on each of two hosts, for three others: a slice and a half from each, where whole ones take two.
TEST(PortBound, DoesNotCountInWholeTransfers) {
  const std::vector<Transfer> transfers(3, {1.0, {0, 1}, {2}, {}});
  std::vector<Transfer> apart = transfers;
  for (int i = 0; i < 3; ++i) apart[static_cast<std::size_t>(i)].receivers = {2 + i};
  EXPECT_EQ(lower_bound(apart, 5), 2);
  EXPECT_EQ(port_bound(apart, 5), 1.5);
  EXPECT_EQ(port_bound(transfers, 3), 3) << "one receives them all";
}

// Tensors that are long enough for chunks: what the plans lose to whole tasks and to filling their chains.
TEST(PortBound, IsNearlyReachedInMostCases) {
  Random random(seed);
  constexpr int cases = 400;
  Options options;
  options.links.network_per_byte = 1e-9;
  int good = 0;
  std::vector<double> ratios;
  for (int i = 0; i < cases; ++i) {
    RandomCase one = random_case(random);
    while (one.task.shape.size() < 3) one = random_case(random);
    const auto plan = make_plan(one.task, one.host_of, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_GE(plan->schedule.seconds * rounding, plan->lower_bound) << text(one.task);
    if (plan->lower_bound == 0) continue;
    ratios.push_back(plan->schedule.seconds / plan->lower_bound);
    good += ratios.back() <= 1.05 ? 1 : 0;
  }
  std::ranges::sort(ratios);
  std::printf(
      "seed %u: %d of %zu plans within 5 %% of the physical bound; median %.3f of it, 0.9 of them %.3f, the worst "
      "%.3f\n",
      seed, good, ratios.size(), ratios[ratios.size() / 2], ratios[ratios.size() * 9 / 10], ratios.back());
  EXPECT_GE(100 * good, 95 * static_cast<int>(ratios.size()));
}

double planning_seconds(int parts) {
  Task task;
  task.source = consecutive_mesh({parts / 4, 4}, 0);
  task.destination = consecutive_mesh({parts / 4, 4}, parts);
  task.source_spec = *parse_spec("S01R", "s");
  task.destination_spec = *parse_spec("RS01", "d");
  task.shape = {parts * 256 - 3, parts * 256 - 5};  // the last parts are shorter
  task.element_bytes = 4;
  std::vector<int> host_of;
  for (int rank = 0; rank < 2 * parts; ++rank) host_of.push_back(rank / 4);
  Options options;
  options.links = {.network_per_byte = 1e-9,
                   .network_per_message = 1e-6,
                   .network_latency = 1e-5,
                   .local_per_byte = 1e-10,
                   .local_per_message = 1e-6};
  const auto begin = std::chrono::steady_clock::now();
  const auto plan = make_plan(task, host_of, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_TRUE(plan.ok() &&
              plan->unit.tasks.size() == static_cast<std::size_t>(parts) * static_cast<std::size_t>(parts));
  std::printf("%d unit tasks: planned in %.1f ms, %.4f of the lower bound\n", parts * parts, seconds * 1e3,
              plan->schedule.seconds / plan->lower_bound);
  return seconds;
}

// Sanitizers and other work on the machine make it slower; docs/reshard.md has the time itself.
TEST(HostSchedule, IsFoundInTime) {
  constexpr double patience = 20;
  EXPECT_LE(planning_seconds(8), 0.05 * patience);
  EXPECT_LE(planning_seconds(64), 1.0 * patience);
}

}  // namespace
}  // namespace plait::plan::reshard
