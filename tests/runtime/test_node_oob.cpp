// Steps through the memory of nodes: what every Oob promises, for nodes of one and of many ranks, and what becomes of
// them where a rank leaves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "runtime/oob/node_oob.h"
#include "runtime/team/set_up.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

struct alignas(64) NodeOobMemory {
  std::array<std::byte, NodeOob::memory_bytes> bytes{};
};

// Ranks of one process whose nodes take turns, so that no node's ranks stand beside each other.
class NodeOobs : public testing::TestWithParam<Shape> {
 protected:
  // What each rank finds wrong, by steps over its node's memory.
  std::string run(const std::function<std::string(Oob& steps)>& rank,
                  const std::function<void(MemoryNetwork&)>& prepare = {}) {
    const Shape shape = GetParam();
    const int nodes = (shape.ranks + shape.on_node - 1) / shape.on_node;
    std::vector<Location> locations(static_cast<std::size_t>(shape.ranks));
    for (int i = 0; i < shape.ranks; ++i) locations[static_cast<std::size_t>(i)].host = {1, std::uint64_t(i % nodes)};
    const Hierarchy hierarchy = Hierarchy::from_locations(locations);
    std::vector<std::unique_ptr<NodeOobMemory>> memory;
    for (int node = 0; node < nodes; ++node) memory.push_back(std::make_unique<NodeOobMemory>());
    InProcessJob job(shape.ranks);
    job.bring_messages(test_seed(), 3);
    if (prepare) prepare(job.network());
    std::string said = job.run([&](Oob& base) -> std::string {
      NodeOob steps(base, hierarchy, memory[static_cast<std::size_t>(hierarchy.node_of(base.rank()))]->bytes);
      return rank(steps);
    });
    steps_of_all_ = job.steps();
    return said;
  }
  int steps_of_all_ = 0;
};

TEST_P(NodeOobs, GatherInTheOrderOfRanksWhateverTheLength) {
  EXPECT_EQ(run([](Oob& oob) -> std::string {
              const auto ranks = static_cast<std::size_t>(oob.ranks()), self = static_cast<std::size_t>(oob.rank());
              for (const std::size_t ints : {1u, 3u, 250u, 20'000u}) {
                std::vector<int> mine(ints), all(ints * ranks, -1), expected(ints * ranks);
                std::iota(expected.begin(), expected.end(), 7);
                std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(self * ints), ints, mine.begin());
                const Status met = oob.gather_all(mine.data(), ints * sizeof(int), all.data(), "gather");
                if (!met.ok()) return met.message();
                if (all != expected) return std::to_string(ints) + " are not in order";
              }
              return oob.meet("meet").ok() ? "" : "did not meet";
            }),
            "");
  EXPECT_EQ(steps_of_all_, 0);
}

TEST_P(NodeOobs, ReduceAndTell) {
  EXPECT_EQ(
      run([](Oob& oob) -> std::string {
        const int ranks = oob.ranks();
        for (const std::size_t longs : {1u, 9u, 30'000u}) {
          std::vector<std::int64_t> mine(longs), all(longs), told(longs);
          std::iota(mine.begin(), mine.end(), oob.rank());
          if (Status met = oob.reduce_all(mine.data(), all.data(), longs, Element::i64, Op::sum, "sum"); !met.ok())
            return met.message();
          for (std::size_t i = 0; i < longs; ++i)
            if (all[i] != ranks * (ranks - 1) / 2 + static_cast<std::int64_t>(i) * ranks) return "a sum is wrong";
          if (oob.rank() == 0) std::iota(told.begin(), told.end(), 5);
          if (Status met = oob.tell_all(told.data(), longs * sizeof told[0], "tell"); !met.ok()) return met.message();
          for (std::size_t i = 0; i < longs; ++i)
            if (told[i] != static_cast<std::int64_t>(i) + 5) return "what is told is wrong";
        }
        std::array<double, 1> least{};
        if (Status met = runtime::reduce_all(oob, std::array<double, 1>{0.5 - oob.rank()}, least, Op::min, "least");
            !met.ok())
          return met.message();
        return least[0] == 1.5 - ranks ? "" : "the least is wrong";
      }),
      "");
}

TEST_P(NodeOobs, GoOnTogetherOrNotAtAll) {
  EXPECT_EQ(run([](Oob& oob) -> std::string {
              if (Status all = oob.go_on_together({}); !all.ok()) return all.message();
              const bool lacks = oob.rank() == oob.ranks() - 1;
              const Status some = oob.go_on_together(lacks ? Status(Code::unavailable, "no memory") : Status());
              if (some.code() != Code::unavailable) return "one went on alone";
              return oob.meet("meet").ok() ? "" : "did not meet afterwards";
            }),
            "");
}

// A rank that is its node's first one, or not, after some steps: all others hear of it, in the same step.
TEST_P(NodeOobs, AllHearOfWhoWithdraws) {
  for (const int gone : {0, GetParam().ranks / 2, GetParam().ranks - 1}) {
    EXPECT_EQ(run([gone](Oob& oob) -> std::string {
                for (int step = 0; step < 3; ++step)
                  if (Status met = oob.meet("meet"); !met.ok()) return "too early";
                if (oob.rank() == gone) {
                  oob.withdraw();
                  return "";
                }
                for (int again = 0; again < 2; ++again)
                  if (oob.meet("meet").code() != Code::peer_failed) return "not told";
                return oob.go_on_together({}).ok() ? "went on" : "";
              }),
              "")
        << gone;
  }
}

// The host fails a node's first rank, in any round of a step: nobody waits for it, nor for those that have heard of it
// before others have.
TEST_P(NodeOobs, AllHearOfAHostThatFails) {
  const int nodes = (GetParam().ranks + GetParam().on_node - 1) / GetParam().on_node;
  int rounds = 0;
  while (1 << rounds < nodes) ++rounds;
  for (int after = 0; after < 2 * rounds; ++after)
    for (const bool sent : {false, true})
      EXPECT_EQ(run(
                    [](Oob& oob) -> std::string {
                      int met = 0;
                      while (met < 4 && oob.meet("meet").ok()) ++met;
                      return met < 4 ? "" : "not told";
                    },
                    [&](MemoryNetwork& network) { network.fail_swap(nodes - 1, after, sent); }),
                "")
          << after << sent;
}

INSTANTIATE_TEST_SUITE_P(Nodes, NodeOobs,
                         testing::Values(Shape{1, 1}, Shape{2, 2}, Shape{7, 7}, Shape{6, 1}, Shape{9, 2}, Shape{16, 4},
                                         Shape{21, 4}, Shape{40, 8}),
                         name_of);

// All of the set-up after the ranks have met and agreed on that.
TEST(NodeOob, TakesTheStepsOfASetUp) {
  constexpr Shape shape{24, 6};
  Process process(shape.ranks);
  process.config().channels = {"shm", "mpi"};
  InProcessJob job(shape.ranks);
  job.bring_messages(test_seed(), 3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    TeamRequest request = request_of(oob.rank(), shape, TeamExtent::all_calls);
    request.location->process = getpid();
    const auto team = set_up(std::move(request), job.oob(oob.rank()), nullptr);
    return team.ok() ? "" : team.status().message();
  }),
            "");
  EXPECT_LE(job.steps(), 2);
}

}  // namespace
}  // namespace plait::runtime
