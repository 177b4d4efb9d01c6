// What a simulated job plays: binomial trees, all ranks' schedules of a plan, and which of their messages wait for
// which.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tuner/simgrid/all_schedules.h"
#include "tuner/simgrid/binomial_trees.h"
#include "tuner/simgrid/connections.h"
#include "tuner/simgrid/row_plan.h"
#include "tuner/simgrid/schedule_progress.h"
#include "tuner/text/platform.h"

namespace plait::tuner {
namespace {

using plan::BoundSchedule;
using plan::BoundStep;
using plan::StepKind;

BoundStep long_send(int peer, std::uint64_t bytes) {
  BoundStep step{};
  step.kind = StepKind::send;
  step.peer = peer;
  step.collective = step.lane = -1;
  step.bytes = bytes;
  return step;
}

// As over a connection: the second long message follows the first, the short one and another receiver's do not wait.
TEST(SimulatedSchedules, LongMessagesOfAPairFollowEachOther) {
  BoundSchedule schedule;
  schedule.steps = {long_send(1, long_bytes), long_send(1, long_bytes + 1), long_send(1, 8), long_send(2, long_bytes)};
  ScheduleProgress progress(schedule);
  progress.begin();
  ASSERT_EQ(progress.posts().size(), 3u);
  const Work first = progress.posts()[0].work;
  for (const Post& post : progress.posts()) EXPECT_NE(post.bytes, long_bytes + 1);
  progress.posts().clear();
  progress.ended(first);
  ASSERT_EQ(progress.posts().size(), 1u);
  EXPECT_EQ(progress.posts()[0].bytes, long_bytes + 1);
}

// Messages of a pair leave when those before them have, which is when no more is on the way than it holds.
TEST(SimulatedSchedules, ShortMessagesOfAPairLeaveInTheirOrder) {
  Connections<int> connections;
  const auto window = [] { return std::uint64_t{1500}; };
  std::vector<int> left;
  const auto leave = [&](int message) { left.push_back(message); };
  EXPECT_TRUE(connections.leaves(0, 1, 1, 1000, window));
  EXPECT_TRUE(connections.leaves(0, 1, 2, 1000, window));  // 1,000 of 1,500 were on the way
  EXPECT_FALSE(connections.leaves(0, 1, 3, 1000, window));
  EXPECT_FALSE(connections.leaves(0, 1, 4, 1, window));    // never before the third
  EXPECT_TRUE(connections.leaves(1, 0, 5, 1000, window));  // another connection
  EXPECT_TRUE(connections.leaves(0, 2, 6, 1000, window));
  connections.arrived(0, 1, 1000, leave);
  EXPECT_EQ(left, std::vector({3}));
  connections.arrived(0, 1, 1000, leave);
  EXPECT_EQ(left, std::vector({3, 4}));
  connections.arrived(0, 1, 1000, leave);
  connections.arrived(0, 1, 1, leave);
  EXPECT_TRUE(connections.leaves(0, 1, 7, 1000, window));
}

// Every message has two ends of as many bytes, and none waits for ever: sends wait for their receivers here.
void expect_to_end(const std::vector<BoundSchedule>& schedules, const std::string& what) {
  std::vector<ScheduleProgress> ranks(schedules.begin(), schedules.end());
  std::map<std::tuple<int, int, int>, std::pair<int, Post>> open;  // by sender, receiver and tag: who came first
  std::vector<std::pair<int, Post>> posted;
  const auto collect = [&](int rank) {
    for (const Post& post : ranks[static_cast<std::size_t>(rank)].posts()) posted.emplace_back(rank, post);
    ranks[static_cast<std::size_t>(rank)].posts().clear();
  };
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    ranks[static_cast<std::size_t>(rank)].begin();
    collect(rank);
  }
  while (!posted.empty()) {
    const auto [rank, post] = posted.back();
    posted.pop_back();
    const auto key = post.sends ? std::tuple(rank, post.peer, post.tag) : std::tuple(post.peer, rank, post.tag);
    const auto [met, is_first] = open.try_emplace(key, rank, post);
    if (is_first) continue;
    const auto [other, others] = met->second;
    open.erase(met);
    EXPECT_EQ(post.bytes, others.bytes) << what;
    EXPECT_NE(post.sends, others.sends) << what;
    ranks[static_cast<std::size_t>(rank)].ended(post.work);
    ranks[static_cast<std::size_t>(other)].ended(others.work);
    collect(rank);
    collect(other);
  }
  for (const ScheduleProgress& rank : ranks) EXPECT_TRUE(rank.outcome().ok()) << what;
}

constexpr Collective with_trees[] = {Collective::bcast, Collective::reduce, Collective::allreduce,
                                     Collective::allgather, Collective::reduce_scatter_block};

TEST(SimulatedSchedules, BinomialTreesEnd) {
  for (const Collective collective : with_trees)
    for (const int ranks : {1, 2, 3, 5, 8, 13})
      for (const std::uint64_t bytes : {std::uint64_t{8}, long_bytes}) {
        std::vector<BoundSchedule> schedules;
        for (int rank = 0; rank < ranks; ++rank)
          schedules.push_back(binomial_trees(collective, bytes, rank, ranks).value());
        expect_to_end(schedules, std::string(name(collective)) + " of " + std::to_string(ranks));
      }
  EXPECT_FALSE(binomial_trees(Collective::alltoall, 8, 0, 4).has_value());
}

// Of 13 ranks the root sends to 8, 4, 2 and 1, the largest subtree first, and pieces of as many ranks as are in it.
TEST(SimulatedSchedules, BinomialTreesHaveTheirShape) {
  const BoundSchedule down = binomial_trees(Collective::bcast, 8, 0, 13).value();
  std::vector<int> children;
  for (const BoundStep& step : down.steps) children.push_back(step.peer);
  EXPECT_EQ(children, (std::vector{8, 4, 2, 1}));
  const BoundSchedule up = binomial_trees(Collective::allgather, 1, 8, 13).value();
  ASSERT_EQ(up.steps[3].kind, StepKind::send);  // after what 9, 10 and 12 had
  EXPECT_EQ(up.steps[3].bytes, 5u);
}

System system_of(const SimulatedShape& shape) {
  Hierarchy hierarchy = hierarchy_of(shape);
  Routes routes = usual_routes(hierarchy);
  return {std::move(hierarchy), plan::default_machine(), std::move(routes)};
}

// Whether few are lowered or all: the same messages.
void expect_as_alone(const SimulatedShape& shape, int& along, int& mirror) {
  const System system = system_of(shape);
  const int last = shape.ranks - shape.ranks_per_node;
  for (const Collective collective : with_trees)
    for (const std::size_t count : {std::size_t{2}, std::size_t{40000}}) {
      const Call call{.collective = collective, .count = count, .element_bytes = 4};
      const SharedPlan shared = plan_for(call, system);
      ASSERT_TRUE(shared.candidate) << shared.problem;
      const auto schedules = all_schedules(shared, call, system, shape.ranks_per_node);
      ASSERT_TRUE(schedules.ok()) << schedules.status().message();
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const auto own = own_plan(shared, call, system, rank);
        ASSERT_TRUE(own.ok());
        const BoundSchedule alone = messages_of(bind(own->schedule, own->semantics, rank, plan::dense_placement(call)));
        EXPECT_TRUE(moves_along((*schedules)[static_cast<std::size_t>(rank)], alone, 0))
            << shared.candidate->name << ", rank " << rank;
      }
      expect_to_end(*schedules, shared.candidate->name);
      if (moves_along((*schedules)[0], (*schedules)[1], 1)) ++along;
      if (mirrors((*schedules)[1], (*schedules)[static_cast<std::size_t>(last + 1)], last)) ++mirror;
    }
}

TEST(SimulatedSchedules, AllAreWhatEachHasAlone) {
  int along = 0, mirror = 0;
  expect_as_alone({.ranks = 32, .ranks_per_node = 4, .nodes_per_switch = 4}, along, mirror);
  EXPECT_GT(along, 0);
  EXPECT_GT(mirror, 0);
  EXPECT_LT(mirror, 10);  // not where there is a root
  // Nodes that are no power of two, and switches of different numbers of them.
  expect_as_alone({.ranks = 36, .ranks_per_node = 3, .nodes_per_switch = 4}, along, mirror);
  expect_as_alone({.ranks = 32, .ranks_per_node = 2, .nodes_per_switch = 6}, along, mirror);
}

// Doubling distances meet on a torus' links: long data goes round its rows, where it doubles in a full network.
TEST(SimulatedSchedules, PlansKnowWhatMeets) {
  Platform platform;
  platform.topology = Topology::torus;
  platform.nodes = 4096;
  platform.link_rate = 6.8e9;
  platform.near_rate = 20e9;
  platform.link_latency_s = 1e-7;
  platform.near_latency_s = 2e-7;
  platform.group = 16;
  platform.group_rate = 64 * platform.link_rate;
  platform.group_latency_s = 2e-7;
  platform.far_latency_s = 1.2e-6;
  const auto gather_of = [&] {
    const Call call{.collective = Collective::allgather, .count = 65536, .element_bytes = 1};
    System system = system_of({.ranks = 256, .ranks_per_node = 4, .nodes_per_switch = 16});
    system.machine = machine_of(platform);
    return plan_for(call, system).candidate->name;
  };
  EXPECT_EQ(gather_of().find("ring"), std::string::npos) << gather_of();
  platform.node_meeting = {.ring = 16};
  platform.group_meeting = {.messages = 4, .ring = 16};
  EXPECT_NE(gather_of().find("AG.2(ring)"), std::string::npos) << gather_of();
}

// Of an exchange with a peer the send comes first, unless it waits for what is received.
TEST(SimulatedSchedules, SendsComeFirst) {
  const auto exchange = [](bool sends_first, bool waits) {
    BoundSchedule schedule;
    BoundStep send = long_send(1, 8), recv = send;
    recv.kind = StepKind::recv;
    send.lane = sends_first ? 0 : 1;
    recv.lane = sends_first ? 1 : 0;
    if (waits) {
      recv.successors = {0, 1};
      schedule.successors = {1};
      send.predecessors = 1;
    }
    if (sends_first)
      schedule.steps = {send, recv};
    else
      schedule.steps = {recv, send};
    schedule.lanes = {{{0, 1}}, {{1, 1}}};
    schedule.lane_steps = {0, 1};
    return schedule;
  };
  EXPECT_TRUE(moves_along(messages_of(exchange(true, false)), messages_of(exchange(false, false)), 0));
  EXPECT_TRUE(moves_along(messages_of(exchange(true, false)), exchange(true, false), 0));
  EXPECT_EQ(messages_of(exchange(false, true)).steps[0].kind, StepKind::recv);
}

// What a rank's peers are shows whether it mirrors node 0's.
TEST(SimulatedSchedules, MirrorsByItsBits) {
  BoundSchedule first;
  first.steps = {long_send(4, 8), long_send(8, 8)};
  EXPECT_EQ(mirrored(first, 12).steps[0].peer, 8);
  EXPECT_TRUE(mirrors(first, mirrored(first, 12), 12));
  EXPECT_FALSE(mirrors(first, mirrored(first, 8), 12));
  BoundSchedule longer = mirrored(first, 12);
  longer.steps[1].bytes = 16;
  EXPECT_FALSE(mirrors(first, longer, 12));
}

TEST(SimulatedSchedules, WithoutItsMemoryNothingIsKept) {
  BoundSchedule schedule;
  schedule.spans.resize(1000);
  EXPECT_EQ(messages_of(schedule).spans.capacity(), 0u);
}

}  // namespace
}  // namespace plait::tuner
