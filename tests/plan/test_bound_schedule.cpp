// Every family, bound to random sizes and run on real numbers by simulated ranks, gives what the collective must give.
#include <gtest/gtest.h>

#include "all_candidates.h"
#include "problem.h"
#include "simulated_ranks.h"

namespace plait {
namespace {

void check(Problem problem, const Candidate& candidate, const Hierarchy& hierarchy, unsigned seed) {
  if (!problem.counts.empty()) problem.call.counts = problem.counts.data();
  SCOPED_TRACE(std::string(name(problem.call.collective)) + " " + candidate.name + " on " + hierarchy.describe() +
               " count " + std::to_string(problem.call.count) + " root " + std::to_string(problem.call.root));
  const auto plan =
      lower(candidate, problem.call.collective, problem.call.root, problem.call.commutative, hierarchy, true);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<SimulatedRank> ranks;
  for (int r = 0; r < problem.ranks; ++r) ranks.push_back(make_rank(problem, *plan, r));
  ASSERT_TRUE(SimulatedJob(ranks, seed, problem.call.commutative ? sum_of : composition_of).run());
  for (int r = 0; r < problem.ranks; ++r) {
    const std::vector<Value> wanted = expected(problem, r);
    if (wanted.empty()) continue;
    ASSERT_EQ(
        std::memcmp(ranks[static_cast<std::size_t>(r)].output.data(), wanted.data(), wanted.size() * sizeof(Value)), 0)
        << "rank " << r;
  }
}

TEST(BoundSchedule, EveryProgramGivesTheRightNumbers) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::vector<int>> shapes = {{2}, {5}, {2, 2}, {2, 2, 2}, {3, 2, 1}, {1, 4}, {1, 1, 1}, {3, 3}};
  for (int round = 0; round < 3; ++round)
    for (const auto& shape : shapes) {
      const Hierarchy hierarchy = Hierarchy::nodes_of(shape);
      for (int c = 0; c < planned_collectives; ++c) {
        const auto collective = static_cast<Collective>(c);
        for (const bool commutative : {true, false}) {
          if (!commutative && !reduces(collective)) continue;
          const Problem problem = random_problem(collective, hierarchy.ranks(), commutative, random);
          const int chunks = 1 + static_cast<int>(random() % 4);
          for (const Candidate& candidate : all_candidates(collective, hierarchy, commutative, 4, 40, chunks, random))
            check(problem, candidate, hierarchy, random());
        }
      }
    }
}

}  // namespace
}  // namespace plait
