// The cheapest programs of a task: a shortest path over the level states with the cost model on the edges.
#pragma once

#include <vector>

#include "plan/algorithm/program.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/instruction_table.h"
#include "plan/synthesis/level_state.h"

namespace plait::plan {

// A program with an algorithm for each instruction and the number of chunks that it is pipelined over.
struct PricedProgram {
  Program program;
  int chunks = 1;
  double seconds = 0;  // predicted
};

struct SearchOptions {
  double bytes = 0;       // of the whole vector
  int fewest_chunks = 1;  // powers of two
  int most_chunks = 64;
  Algorithms algorithms = {};  // that may be used; not owned
  double tolerance = 0.01;     // 0: exact. Else a program that is faster by less than this share of the time need
                               // not be found, and the effort for each number of chunks is bounded
};

// The `count` cheapest, ascending; fewer where there are no more. For each number of chunks an A* search over the level
// states, with fill + (chunks - 1) x one level's load as the cost of an edge: a sum that never exceeds the pipeline's
// time, fill + (chunks - 1) x slowest level. Paths come in ascending order of that sum, and the search ends when it
// reaches the times of the results. Two results may differ in algorithms only.
std::vector<PricedProgram> cheapest_programs(const SynthesisTask& task, const GroupModel& model,
                                             const SearchOptions& options, int count);

// The algorithms and chunks that make a given program cheapest. Instructions whose algorithm was given keep it.
// Fails with the first instruction that is not valid at its place, or when the program does not reach the goal.
Result<PricedProgram> price_program(const SynthesisTask& task, const GroupModel& model, const SearchOptions& options,
                                    const Program& program);

}  // namespace plait::plan
