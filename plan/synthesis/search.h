// The cheapest programs of a task: a shortest path over the level states with the cost model on the edges.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/program.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/level_state.h"

namespace plait {

// A program with an algorithm for each instruction and the number of chunks that it is pipelined over.
struct PricedProgram {
  Program program;
  int chunks = 1;
  double seconds = 0;  // predicted
};

struct SearchOptions {
  double bytes = 0;                 // of the whole vector
  int fewest_chunks = 1;            // powers of two
  int most_chunks = 64;
  std::uint32_t algorithms = ~0u;   // bit set of the algorithms that may be used
};

// The `count` cheapest, ascending; fewer where there are no more. Exact for the cost model: fill + (chunks - 1) x slowest
// level, with the best chunks. Two results may differ in algorithms only. Best first search over (state, cost) with
// dominance; a state is expanded only while it may still lead to one of the results.
std::vector<PricedProgram> cheapest_programs(const SynthesisTask& task, const GroupModel& model,
                                             const SearchOptions& options, int count);

// The algorithms and chunks that make a given program cheapest. Instructions whose algorithm was given keep it.
// Fails with the first instruction that is not valid at its place, or when the program does not reach the goal.
Result<PricedProgram> price_program(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options,
                                    const Program& program);

}  // namespace plait
