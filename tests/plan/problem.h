// One call with its data, as the tests pose it to plans: what each rank puts in, and what it must get, from the plain
// definition of the collective.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "plan/model/builder.h"
#include "tests/plan/simulated_ranks.h"

namespace plait::plan {

using Value = std::uint32_t;

struct Problem {
  Call call;
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;  // allgatherv
  int ranks;
  bool in_place;
  Value salt = 0;  // other numbers for another call
};

inline Value contribution(const Problem& problem, int rank, std::size_t index) {
  return (static_cast<Value>(rank) * 1000003 + static_cast<Value>(index) * 7 + problem.salt * 40503 + 1) | 0x10000;
}

// What reductions compute: the sum, or, where the operator does not commute, one linear map after another (slope in the
// high half, offset in the low one), which is associative.
inline Value combined(Value left, Value right, bool commutative) {
  if (commutative) return left + right;
  const Value slope = right >> 16;
  return (left >> 16) * slope << 16 | (((left & 0xffff) * slope + (right & 0xffff)) & 0xffff);
}

inline Value sum_of(Value left, Value right) { return combined(left, right, true); }
inline Value composition_of(Value left, Value right) { return combined(left, right, false); }

inline std::size_t segment_count(const Problem& problem, int segment) {
  return problem.counts.empty() ? problem.call.count : problem.counts[static_cast<std::size_t>(segment)];
}

inline std::size_t total(const Problem& problem) {
  std::size_t sum = 0;
  for (int r = 0; r < problem.ranks; ++r) sum += segment_count(problem, r);
  return sum;
}

inline std::size_t start_of(const Problem& problem, int segment) {
  if (!problem.displacements.empty()) return problem.displacements[static_cast<std::size_t>(segment)];
  std::size_t start = 0;
  for (int r = 0; r < segment; ++r) start += segment_count(problem, r);
  return start;
}

inline std::size_t input_count(const Problem& problem, int rank) {
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
inline std::vector<Value> expected(const Problem& problem, int rank) {
  const Call& call = problem.call;
  std::vector<Value> result;
  const auto reduced = [&](std::size_t index) {
    Value value = contribution(problem, 0, index);
    for (int r = 1; r < problem.ranks; ++r) {
      value = combined(value, contribution(problem, r, index), call.commutative);
    }
    return value;
  };
  switch (call.collective) {
    case Collective::barrier:
      break;
    case Collective::bcast:
      if (rank != call.root)
        for (std::size_t i = 0; i < call.count; ++i) result.push_back(contribution(problem, call.root, i));
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
          result[start_of(problem, r) + i] = contribution(problem, r, i);
      break;
    }
    case Collective::scatter:
      for (std::size_t i = 0; i < call.count; ++i)
        result.push_back(contribution(problem, call.root, static_cast<std::size_t>(rank) * call.count + i));
      break;
    case Collective::alltoall:
      for (int r = 0; r < problem.ranks; ++r)
        for (std::size_t i = 0; i < call.count; ++i)
          result.push_back(contribution(problem, r, static_cast<std::size_t>(rank) * call.count + i));
      break;
    default:
      for (std::size_t i = 0; i < segment_count(problem, rank); ++i)
        result.push_back(reduced(start_of(problem, rank) + i));
  }
  return result;
}

inline bool may_share_memory(Collective collective, int rank, int root) {
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
inline std::size_t shared_from(const Problem& problem, int rank) {
  const Collective collective = problem.call.collective;
  const bool own_segment =
      collective == Collective::allgather || collective == Collective::allgatherv || collective == Collective::gather;
  return own_segment ? start_of(problem, rank) : 0;
}

inline SimulatedRank make_rank(const Problem& problem, const LoweredPlan& plan, int rank) {
  Placement placement = dense_placement(problem.call);
  if (!problem.displacements.empty()) placement.displacements = problem.displacements.data();
  SimulatedRank made;
  made.in_place = problem.in_place && problem.call.collective != Collective::scatter &&
                  may_share_memory(problem.call.collective, rank, problem.call.root);
  placement.in_place = made.in_place;
  made.schedule = bind(plan.schedules[static_cast<std::size_t>(rank)], plan.semantics, rank, placement);
  std::vector<Value> input(input_count(problem, rank));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = contribution(problem, rank, i);
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

inline Problem random_problem(Collective collective, int ranks, bool commutative, std::mt19937& random) {
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

}  // namespace plait::plan
