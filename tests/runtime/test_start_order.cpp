// The order in which persistent collectives run, with threads and one memory in the place of ranks.
#include "runtime/progress/start_order.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/tl/ranks.h"
#include "topo/hierarchy.h"

namespace plait::runtime {
namespace {

class Job {
 public:
  explicit Job(const std::vector<int>& ranks_on_node)
      : hierarchy_(Hierarchy::nodes_of(ranks_on_node)),
        messages_(hierarchy_, 64 * 1024),
        segment_(SharedSegment::create(messages_.bytes()).value()) {
    for (std::size_t node = 0; node < ranks_on_node.size(); ++node)
      tables_.push_back(SharedSegment::create(StartOrder::table_bytes).value());
  }

  int ranks() const { return hierarchy_.ranks(); }

  NodeLeaders nodes(int rank) const {
    NodeLeaders nodes{.leaders = {}, .own = hierarchy_.node_of(rank), .rank = rank, .ranks = 1};
    for (int node = 0; node < hierarchy_.nodes(); ++node)
      nodes.leaders.push_back(hierarchy_.ranks_on_node(node).front());
    nodes.ranks = static_cast<std::uint32_t>(hierarchy_.ranks_on_node(nodes.own).size());
    return nodes;
  }
  SharedSegment table(int rank) {
    SharedSegment& shared = tables_[static_cast<std::size_t>(hierarchy_.node_of(rank))];
    return SharedSegment::view(shared.data(), shared.bytes());
  }
  std::unique_ptr<Channel> channel(int rank) { return messages_.among_all(segment_.data(), rank).value(); }

 private:
  Hierarchy hierarchy_;
  NodeMemory messages_;
  SharedSegment segment_;
  std::vector<SharedSegment> tables_;
};

// Starts every slot so many times, each anew as soon as it has run, in a random order. Returns in which order they ran.
std::vector<std::uint32_t> run(Job& job, int rank, std::uint32_t slots, int starts, unsigned seed) {
  std::mt19937 random(seed + static_cast<unsigned>(rank) * 977);
  const std::unique_ptr<Channel> channel = job.channel(rank);
  StartOrder order(job.nodes(rank), job.table(rank), channel.get());
  std::vector<int> left(slots, starts);
  std::vector<std::uint32_t> idle, ran;
  for (std::uint32_t slot = 0; slot < slots; ++slot) idle.push_back(slot);
  while (ran.size() < static_cast<std::size_t>(slots) * static_cast<std::size_t>(starts)) {
    if (!idle.empty() && random() % 3 != 0) {
      std::swap(idle[random() % idle.size()], idle.back());
      order.announce(idle.back());
      idle.pop_back();
    }
    if (!order.progress().ok()) return {};
    while (const std::optional<std::uint32_t> slot = order.next()) {
      ran.push_back(*slot);
      if (--left[*slot] > 0) idle.push_back(*slot);
    }
    if (random() % 16 == 0) sched_yield();
  }
  return ran;
}

class StartOrders : public testing::TestWithParam<std::vector<int>> {};

TEST_P(StartOrders, AreTheSameOnAllRanks) {
  for (const auto& [slots, starts] : {std::pair{1u, 300}, {7u, 200}, {200u, 20}}) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    Job job(GetParam());
    std::vector<std::vector<std::uint32_t>> orders(static_cast<std::size_t>(job.ranks()));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < job.ranks(); ++rank)
      threads.emplace_back([&, rank, slots = slots, starts = starts] {
        orders[static_cast<std::size_t>(rank)] = run(job, rank, slots, starts, seed);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(orders.front().size(), static_cast<std::size_t>(slots) * static_cast<std::size_t>(starts));
    for (const auto& order : orders) EXPECT_EQ(order, orders.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, StartOrders,
                         testing::Values(std::vector{2}, std::vector{4}, std::vector{1, 1}, std::vector{1, 1, 1, 1},
                                         std::vector{2, 3, 1}, std::vector{3, 2}));

// A list never overtakes a reader that reads what it runs, however often slots come again.
TEST(SlotList, GoesRound) {
  const SharedSegment memory = SharedSegment::create(sizeof(SlotList)).value();
  auto& list = *reinterpret_cast<SlotList*>(memory.data());
  std::uint64_t position = 0;
  EXPECT_FALSE(list.next(position).has_value());
  for (std::uint32_t i = 0; i < 3 * most_persistent; ++i) {
    list.append(i % most_persistent);
    EXPECT_EQ(list.next(position), i % most_persistent);
    EXPECT_FALSE(list.next(position).has_value());
  }
  for (std::uint32_t slot = 0; slot < most_persistent; ++slot) list.append(slot);
  for (std::uint32_t slot = 0; slot < most_persistent; ++slot) EXPECT_EQ(list.next(position), slot);
}

TEST(StartOrder, AFailureIsSeenOnTheWholeNode) {
  Job job({2});
  StartOrder first(job.nodes(0), job.table(0), nullptr), second(job.nodes(1), job.table(1), nullptr);
  EXPECT_FALSE(second.failed());
  first.announce(3);
  EXPECT_FALSE(second.next().has_value());
  first.fail();
  EXPECT_TRUE(second.failed());
}

}  // namespace
}  // namespace plait::runtime
