// A team's set-up and its first calls, by ranks in one process: what mpirun's jobs show of a few ranks, of many.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/reduction.h"
#include "runtime/call/timed_call.h"
#include "runtime/job/job.h"
#include "runtime/team/network_rates.h"
#include "runtime/team/own_rails.h"
#include "runtime/team/set_up.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

Status run(Team& team, const Call& call, const void* input, void* output, const Reducer* reducer) {
  const PreparedCall& prepared = team.schedules.find({.call = call, .candidate = planners_candidate});
  if (!prepared.accelerated) return {Code::internal, std::string("not planned: ") + prepared.reason};
  std::vector<std::byte> scratch(prepared.schedule.scratch_bytes);
  Buffers buffers;
  buffers.base = {static_cast<std::byte*>(const_cast<void*>(input)), static_cast<std::byte*>(output), scratch.data()};
  const Status status = team.engine.run(prepared.schedule, buffers, reducer, nullptr);
  return status.ok() ? status : team.reason_of(status);
}

Call allreduce(std::size_t count) {
  return {.collective = Collective::allreduce,
          .root = 0,
          .count = count,
          .element_bytes = sizeof(std::uint64_t),
          .commutative = true};
}

// Each rank gives its number and adds: why the sums are wrong, or nothing.
std::string sum_ranks(Team& team, int rank, int ranks, std::size_t count) {
  static const Reducer sum = make_reducer(Op::sum, Element::u64);
  std::vector<std::uint64_t> mine(count), all(count);
  std::iota(mine.begin(), mine.end(), static_cast<std::uint64_t>(rank));
  if (Status status = run(team, allreduce(count), mine.data(), all.data(), &sum); !status.ok()) return status.message();
  const auto n = static_cast<std::uint64_t>(ranks);
  for (std::size_t i = 0; i < count; ++i)
    if (all[i] != n * (n - 1) / 2 + n * i) return "element " + std::to_string(i) + " is " + std::to_string(all[i]);
  return {};
}

// The job's messages are late by a seed that the test prints where it fails.
class SetUpOf : public testing::TestWithParam<Shape> {
 protected:
  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

// Nobody is told of all ranks but the nodes' first ones.
class ByNode : public SetUpOf {
 protected:
  void SetUp() override { process_.config().flat_ranks = 1; }
  const Shape shape_ = GetParam();
  Process process_{shape_.ranks};
};

class CallsOf : public SetUpOf {};   // by no more ranks than plans are made for
class TrialsOf : public SetUpOf {};  // likewise, tried

TEST_P(SetUpOf, ConnectsAllRanks) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    auto team = set_up(request_of(rank, shape, TeamExtent::all_calls), job.oob(rank), nullptr);
    if (!team.ok()) return team.status().message();
    const int nodes = (shape.ranks + shape.on_node - 1) / shape.on_node;
    if ((*team)->planner.hierarchy().nodes() != nodes)
      return "found " + std::to_string((*team)->planner.hierarchy().nodes()) + " nodes";
    if (shape.ranks > most_team_ranks) return {};
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}})
      if (std::string wrong = sum_ranks(**team, rank, shape.ranks, count); !wrong.empty()) return wrong;
    return {};
  }),
            "");
}

// Over UCX a message says from whom it is, and not for whom in a process: each rank has rails of its own.
TEST(SetUp, ConnectsRanksOfOneProcessByUcx) {
  constexpr Shape shape{3, 3};
  Process process(shape.ranks);
  process.config().channels = {"ucx", "tcp"};
  if (!system_ucp().ok() || process_rails().rails.empty()) GTEST_SKIP() << "no UCX, or no rail";
  detail::threaded.store(true);
  InProcessJob job(shape.ranks);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    RailsOfRank rails;
    for (int again = 0; again < 2; ++again) {
      TeamRequest request = request_of(rank, shape, TeamExtent::all_calls);
      request.rails = &rails;
      auto team = set_up(std::move(request), job.oob(rank), nullptr);
      if (!team.ok()) return team.status().message();
      for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{200'000}})
        for (int round = 0; round < 5; ++round)
          if (std::string wrong = sum_ranks(**team, rank, shape.ranks, count); !wrong.empty()) return wrong;
    }
    return {};
  }),
            "");
  detail::threaded.store(false);
}

// A rank in the place of each other one of its node, so that neither ranks nor nodes stand in the order of the other.
TeamRequest request_of_mixed(int rank, const Shape& shape) {
  TeamRequest request = request_of(rank, shape, TeamExtent::all_calls);
  const int nodes = (shape.ranks + shape.on_node - 1) / shape.on_node;
  request.location->host.low = static_cast<std::uint64_t>(nodes - rank % nodes);
  request.location->core = (rank / nodes) % 3;
  request.location->leaf_switch = 1 + request.location->host.low / 2;
  return request;
}

TEST_P(ByNode, FindsTheSameHierarchyAsAllTogether) {
  InProcessJob job(shape_.ranks);
  job.bring_messages(seed, 3);
  std::vector<Location> locations;
  for (int rank = 0; rank < shape_.ranks; ++rank) locations.push_back(*request_of_mixed(rank, shape_).location);
  const Hierarchy expected = Hierarchy::from_locations(locations);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    auto team = set_up(request_of_mixed(rank, shape_), job.oob(rank), nullptr);
    if (!team.ok()) return team.status().message();
    const Hierarchy& found = (*team)->planner.hierarchy();
    if (!std::ranges::equal(found.image(), expected.image())) return "found " + found.describe();
    return sum_ranks(**team, rank, shape_.ranks, 1000);
  }),
            "");
}

TEST_P(ByNode, ConnectsAllRanks) {
  process_.config().channels = {"shm", "mpi"};
  InProcessJob job(shape_.ranks);
  job.bring_messages(seed, 3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    TeamRequest request = request_of(rank, shape_, TeamExtent::short_calls);
    request.location->process = getpid();
    auto team = set_up(std::move(request), job.oob(rank), nullptr);
    if (!team.ok()) return team.status().message();
    if ((*team)->short_calls_only) return "was set up for short calls alone";
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}})
      if (std::string wrong = sum_ranks(**team, rank, shape_.ranks, count); !wrong.empty()) return wrong;
    return {};
  }),
            "");
}

TEST_P(ByNode, IsLeftWhereSomeOfTheRanksCannotMeet) {
  InProcessJob job(shape_.ranks);
  job.bring_messages(seed, 0);
  job.have_no_parts();
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    auto team = set_up(request_of(oob.rank(), shape_, TeamExtent::all_calls), job.oob(oob.rank()), nullptr);
    return team.ok() ? sum_ranks(**team, oob.rank(), shape_.ranks, 10) : team.status().message();
  }),
            "");
}

TEST_P(ByNode, NamesARankThatHasNoMemory) {
  InProcessJob job(shape_.ranks);
  job.bring_messages(seed, 0);
  const int missing = shape_.ranks / 2;
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    if (oob.rank() == missing) {
      oob.withdraw();
      return {};
    }
    auto team = set_up(request_of(oob.rank(), shape_, TeamExtent::all_calls), job.oob(oob.rank()), nullptr);
    if (team.ok()) return "was set up";
    const std::string text = team.status().message();
    return text.find("rank " + std::to_string(missing)) != std::string::npos ? "" : text;
  }),
            "");
}

// Else a short call would go one way on a communicator of short calls and another one beside it, and round differently.
TEST_P(SetUpOf, GoesByTheSameNetworkForShortCallsAsForAll) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 0);
  forget_network_rates();
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    auto all = set_up(request_of(rank, shape, TeamExtent::all_calls), job.oob(rank), nullptr);
    if (!all.ok()) return all.status().message();
    auto few = set_up(request_of(rank, shape, TeamExtent::short_calls), job.oob(rank), nullptr);
    if (!few.ok()) return few.status().message();
    const double known = (*all)->planner.machine().levels.front().port_seconds_per_byte,
                 taken = (*few)->planner.machine().levels.front().port_seconds_per_byte;
    return taken == known ? "" : "by " + std::to_string(taken) + " s a byte, where it is " + std::to_string(known);
  }),
            "");
}

TEST_P(SetUpOf, NamesARankThatHasNoMemory) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 0);
  const int missing = shape.ranks / 2;
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    if (oob.rank() == missing) {
      oob.withdraw();
      return {};
    }
    auto team = set_up(request_of(oob.rank(), shape, TeamExtent::all_calls), job.oob(oob.rank()), nullptr);
    if (team.ok()) return "was set up";
    const std::string text = team.status().message();
    return text.find("rank " + std::to_string(missing)) != std::string::npos ? "" : text;
  }),
            "");
}

TEST_P(SetUpOf, SaysWhereNoChannelConnectsTheRanks) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  process.config().channels = {"shm"};  // of which none connects the ranks of different nodes
  const Shape apart{shape.ranks, 1};
  InProcessJob job(shape.ranks);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    auto team = set_up(request_of(oob.rank(), apart, TeamExtent::all_calls), job.oob(oob.rank()), nullptr);
    if (team.ok()) return "was set up";
    return team.status().code() == Code::unsupported ? "" : team.status().message();
  }),
            "");
}

TEST_P(CallsOf, GoesOnFromShortCallsToAll) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    auto first = set_up(request_of(rank, shape, TeamExtent::short_calls), job.oob(rank), nullptr);
    if (!first.ok()) return first.status().message();
    if (!(*first)->short_calls_only) return "was set up for all calls at once";
    if (std::string wrong = sum_ranks(**first, rank, shape.ranks, 8); !wrong.empty()) return wrong;
    auto second = set_up(request_of(rank, shape, TeamExtent::all_calls), nullptr, std::move(*first));
    if (!second.ok()) return second.status().message();
    return sum_ranks(**second, rank, shape.ranks, 4096);
  }),
            "");
}

// A rank fails in a call which some of the others have finished by then: in their next step together they hear of it.
TEST_P(CallsOf, ReplacesNothingOnceARankHasFailed) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int rank = oob.rank();
    auto first = set_up(request_of(rank, shape, TeamExtent::short_calls), job.oob(rank), nullptr);
    if (!first.ok()) return first.status().message();
    if (rank == 0) {
      (*first)->give_up({Code::unavailable, "nothing works here"});
      return {};
    }
    const auto second = set_up(request_of(rank, shape, TeamExtent::all_calls), nullptr, std::move(*first));
    if (second.ok()) return "was set up";
    const std::string text = second.status().message();
    return text == "rank 0 has failed: nothing works here" ? "" : text;
  }),
            "");
}

// A rank that leaves in the midst of calls: no other waits for it for ever, and all hear why.
TEST_P(CallsOf, TellsAllWhyARankLeft) {
  const Shape shape = GetParam();
  std::mt19937_64 random(seed);
  Process process(shape.ranks);
  for (int round = 0; round < 3; ++round) {
    InProcessJob job(shape.ranks);
    job.bring_messages(random(), 3);
    const int leaver = static_cast<int>(random() % static_cast<std::uint64_t>(shape.ranks));
    const int calls = static_cast<int>(random() % 4);
    EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
      const int rank = oob.rank();
      auto team = set_up(request_of(rank, shape, TeamExtent::all_calls), job.oob(rank), nullptr);
      if (!team.ok()) return team.status().message();
      for (int call = 0; call < calls && rank == leaver; ++call)
        if (std::string wrong = sum_ranks(**team, rank, shape.ranks, 64); !wrong.empty()) return wrong;
      if (rank == leaver) {
        (*team)->give_up({Code::unavailable, "out of memory"});
        job.network().cut_off(rank);
        return {};
      }
      // It may get what it needs of a few calls, but not for ever.
      std::string text;
      for (int call = 0; call < calls + 100 && text.empty(); ++call) text = sum_ranks(**team, rank, shape.ranks, 64);
      return text == "rank " + std::to_string(leaver) + " has failed: out of memory" ? "" : "'" + text + "'";
    }),
              "");
  }
}

// The ranks time calls, each by its own clock, and come to one verdict: by the slowest of them. `took`: what a
// call takes on this rank, in nanoseconds, by the host or by a plan.
std::string settle(Team& team, const std::function<std::uint64_t(bool host)>& took, int& taken) {
  const Call call = allreduce(64);
  for (int number = 0; number < 100'000; ++number) {
    TrialClass* tried = team.schedules.find({.call = call}).tried;
    if (tried == nullptr) return "has no trial";
    const bool timed = tried->trial.due();
    tried->trial.count();
    if (!timed) {
      if (tried->trial.trials() > 0 && !tried->trial.open()) {
        taken = tried->trial.taken();
        return {};
      }
      continue;
    }
    if (!tried->trial.planned()) {
      team.schedules.plan(*tried);
      continue;
    }
    const int candidate = tried->trial.candidate();
    if (Status met = meet_for_timed_call(team, tried->trial); !met.ok()) return met.message();
    if (Status ended = end_timed_call(team, *tried, took(candidate == Trial::host), payload_bytes(call, 1));
        !ended.ok())
      return ended.message();
  }
  return "came to no verdict";
}

TEST_P(TrialsOf, SettlesATrialAlikeOnAllRanks) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  process.config().trial = TrialMode::all;
  process.config().trial_after = 2;
  process.config().trial_percent = 1000;
  process.config().cache = false;
  process.config().host_when_faster = true;
  for (const bool host_is_faster : {true, false}) {
    InProcessJob job(shape.ranks);
    job.bring_messages(seed, 2);
    const int slow = shape.ranks / 2;  // the one rank on which the loser is slow: for all others it would have won
    std::vector<int> ways(static_cast<std::size_t>(shape.ranks), -1);
    EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
      const int rank = oob.rank();
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(rank));
      auto team = set_up(request_of(rank, shape, TeamExtent::all_calls), job.oob(rank), nullptr);
      if (!team.ok()) return team.status().message();
      const auto took = [&](bool host) -> std::uint64_t {
        const std::uint64_t loser = rank == slow ? 50'000 : 2'000;
        return (host == host_is_faster ? 10'000 : loser) + random() % 200;
      };
      return settle(**team, took, ways[static_cast<std::size_t>(rank)]);
    }),
              "");
    for (const int way : ways) {
      EXPECT_EQ(way, ways.front());
      EXPECT_EQ(way == Trial::host, host_is_faster);
    }
  }
}

constexpr Shape many{1024, 64};
const auto few = testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{8, 2}, Shape{17, 5}, Shape{64, 8});
const auto planned = testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{8, 2}, Shape{17, 5}, Shape{256, 32});

INSTANTIATE_TEST_SUITE_P(Few, SetUpOf, few, name_of);
INSTANTIATE_TEST_SUITE_P(Planned, SetUpOf, testing::Values(Shape{256, 32}), name_of);
INSTANTIATE_TEST_SUITE_P(Many, SetUpOf, testing::Values(many), name_of);
INSTANTIATE_TEST_SUITE_P(Few, ByNode, few, name_of);
INSTANTIATE_TEST_SUITE_P(Many, ByNode, testing::Values(many), name_of);
INSTANTIATE_TEST_SUITE_P(Planned, CallsOf, planned, name_of);
INSTANTIATE_TEST_SUITE_P(Few, TrialsOf, few, name_of);

}  // namespace
}  // namespace plait::runtime
