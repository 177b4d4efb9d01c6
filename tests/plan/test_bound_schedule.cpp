// Every family, bound to random sizes and run on real numbers by simulated ranks, gives what the collective must give.
#include <gtest/gtest.h>

#include <numeric>

#include "all_candidates.h"
#include "simulated_ranks.h"

namespace plait {
namespace {

using Value = std::uint32_t;

Value contribution(int rank, std::size_t index) {
  return static_cast<Value>(rank * 1000003 + static_cast<int>(index) * 7 + 1);
}

struct Problem {
  Call call;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;  // allgatherv
  int ranks;
  bool in_place;
};

std::size_t segment_count(const Problem& problem, int segment) {
  return problem.counts.empty() ? problem.call.count : problem.counts[static_cast<std::size_t>(segment)];
}

std::size_t total(const Problem& problem) {
  std::size_t sum = 0;
  for (int r = 0; r < problem.ranks; ++r) sum += segment_count(problem, r);
  return sum;
}

std::size_t start_of(const Problem& problem, int segment) {
  if (!problem.displacements.empty()) return problem.displacements[static_cast<std::size_t>(segment)];
  std::size_t start = 0;
  for (int r = 0; r < segment; ++r) start += segment_count(problem, r);
  return start;
}

std::size_t input_count(const Problem& problem, int rank) {
  switch (problem.call.collective) {
    case Collective::barrier:
      return 0;
    case Collective::bcast:
      return rank == problem.call.root ? problem.call.count : 0;
    case Collective::reduce:
    case Collective::allreduce:
      return problem.call.count;
    case Collective::scatter:
      return rank == problem.call.root ? total(problem) : 0;
    case Collective::alltoall:
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return total(problem);
    default:
      return segment_count(problem, rank);
  }
}

// What `rank`'s output must hold; empty: nothing is promised.
std::vector<Value> expected(const Problem& problem, int rank) {
  const Call& call = problem.call;
  std::vector<Value> result;
  const auto sum = [&](std::size_t index) {
    Value value = 0;
    for (int r = 0; r < problem.ranks; ++r) value += contribution(r, index);
    return value;
  };
  const auto largest = [&](std::size_t index) {
    Value value = 0;
    for (int r = 0; r < problem.ranks; ++r) value = std::max(value, contribution(r, index));
    return value;
  };
  const auto reduced = [&](std::size_t index) { return call.commutative ? sum(index) : largest(index); };
  switch (call.collective) {
    case Collective::barrier:
      break;
    case Collective::bcast:
      if (rank != call.root)
        for (std::size_t i = 0; i < call.count; ++i) result.push_back(contribution(call.root, i));
      break;
    case Collective::reduce:
      if (rank != call.root) break;
      [[fallthrough]];
    case Collective::allreduce:
      for (std::size_t i = 0; i < call.count; ++i) result.push_back(reduced(i));
      break;
    case Collective::gather:
      if (rank != call.root) break;
      [[fallthrough]];
    case Collective::allgather:
    case Collective::allgatherv: {
      std::size_t end = 0;
      for (int r = 0; r < problem.ranks; ++r) end = std::max(end, start_of(problem, r) + segment_count(problem, r));
      result.assign(end, 0xEEEEEEEE);
      for (int r = 0; r < problem.ranks; ++r)
        for (std::size_t i = 0; i < segment_count(problem, r); ++i)
          result[start_of(problem, r) + i] = contribution(r, i);
      break;
    }
    case Collective::scatter:
      for (std::size_t i = 0; i < call.count; ++i)
        result.push_back(contribution(call.root, static_cast<std::size_t>(rank) * call.count + i));
      break;
    case Collective::alltoall:
      for (int r = 0; r < problem.ranks; ++r)
        for (std::size_t i = 0; i < call.count; ++i)
          result.push_back(contribution(r, static_cast<std::size_t>(rank) * call.count + i));
      break;
    default:
      for (std::size_t i = 0; i < segment_count(problem, rank); ++i)
        result.push_back(reduced(start_of(problem, rank) + i));
  }
  return result;
}

bool may_share_memory(Collective collective, int rank, int root) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::allgatherv:
      return true;
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
      return rank == root;
    default:
      return false;
  }
}

// In place, the input lies in the output from this element on; scatter's root has it the other way round and is left
// out.
std::size_t shared_from(const Problem& problem, int rank) {
  const Collective collective = problem.call.collective;
  const bool own_segment =
      collective == Collective::allgather || collective == Collective::allgatherv || collective == Collective::gather;
  return own_segment ? start_of(problem, rank) : 0;
}

SimulatedRank make_rank(const Problem& problem, const LoweredPlan& plan, int rank) {
  Placement placement = dense_placement(problem.call);
  if (!problem.displacements.empty()) placement.displacements = problem.displacements.data();
  SimulatedRank made;
  made.in_place = problem.in_place && problem.call.collective != Collective::scatter &&
                  may_share_memory(problem.call.collective, rank, problem.call.root);
  placement.in_place = made.in_place;
  made.schedule = bind(plan.schedules[static_cast<std::size_t>(rank)], plan.semantics, rank, placement);
  std::vector<Value> input(input_count(problem, rank));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = contribution(rank, i);
  made.input.resize(input.size() * sizeof(Value));
  if (!input.empty()) std::memcpy(made.input.data(), input.data(), made.input.size());
  const std::size_t output = expected(problem, rank).size() * sizeof(Value);
  made.output.assign(output, std::byte{0xEE});
  made.scratch.resize(made.schedule.scratch_bytes);
  made.in_place_offset = shared_from(problem, rank) * sizeof(Value);
  if (made.in_place && !input.empty())
    std::memcpy(made.output.data() + made.in_place_offset, input.data(), made.input.size());
  EXPECT_LE(made.schedule.input_bytes, made.in_place ? output : made.input.size());
  EXPECT_LE(made.schedule.output_bytes, output);
  return made;
}

Problem random_problem(Collective collective, int ranks, bool commutative, std::mt19937& random) {
  constexpr std::size_t sizes[] = {1, 2, 3, 15, 16, 17, 63, 64, 65, 200, 1000};
  Problem problem{{.collective = collective, .element_bytes = sizeof(Value), .commutative = commutative},
                  {},
                  {},
                  ranks,
                  random() % 2 == 0};
  if (rooted(collective)) problem.call.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  problem.call.count = collective == Collective::barrier ? 0 : sizes[random() % std::size(sizes)];
  if (collective == Collective::barrier) problem.call.element_bytes = 0;
  if (collective == Collective::allgatherv || collective == Collective::reduce_scatter)
    for (int r = 0; r < ranks; ++r) problem.counts.push_back(random() % 3 == 0 ? 0 : random() % 100);
  if (!problem.counts.empty()) problem.call.count = 0;
  if (collective == Collective::allgatherv) {  // in reverse order, with gaps
    std::size_t at = 3;
    problem.displacements.resize(problem.counts.size());
    for (std::size_t r = problem.counts.size(); r-- > 0; at += problem.counts[r] + r % 3) problem.displacements[r] = at;
  }
  return problem;
}

void check(Problem problem, const Candidate& candidate, const Hierarchy& hierarchy, unsigned seed) {
  if (!problem.counts.empty()) problem.call.counts = problem.counts.data();
  SCOPED_TRACE(std::string(name(problem.call.collective)) + " " + candidate.name + " on " + hierarchy.describe() +
               " count " + std::to_string(problem.call.count) + " root " + std::to_string(problem.call.root));
  const auto plan =
      lower(candidate, problem.call.collective, problem.call.root, problem.call.commutative, hierarchy, true);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<SimulatedRank> ranks;
  for (int r = 0; r < problem.ranks; ++r) ranks.push_back(make_rank(problem, *plan, r));
  ASSERT_TRUE(SimulatedJob(ranks, seed, !problem.call.commutative).run());
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
      for (int c = 0; c < collective_count; ++c) {
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
